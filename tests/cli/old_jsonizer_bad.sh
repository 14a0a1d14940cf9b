# SPDX-License-Identifier: Apache-2.0
# room: chakra
# Where the old program fails, one error and no file.
printf '\7\10\11\12\13' >bad.et
chakra_jsonizer --input_filename bad.et --output_filename bad.json
echo "exit $?"
chakra_jsonizer --input_filename nowhere.et --output_filename bad.json
echo "exit $?"
ls
