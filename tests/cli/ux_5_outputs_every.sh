# SPDX-License-Identifier: Apache-2.0
# room: stage, scale_sim, schedgen, nccl_generator
# Every option of every command that writes a file or a folder, as the option tables have them: a place that cannot be written is
# refused before anything is read (the inputs are not there), in one line that names it.  An option whose help says that it
# writes must be among them.
"$ORR_BUILD/cli/orrery_tables" files >files
echo a file >plain
while IFS="$(printf '\t')" read -r command option does help arguments; do
    if [ $does = reads ]; then
        case $help in
        *write*|*draw*|*"output f"*) echo "orrery $command $option is not checked: $help" ;;
        esac
        continue
    fi
    for place in nowhere/x plain/x; do
        # Folders are made with those above them.
        [ $place = nowhere/x ] && case $command in demo|machine|scalesim) continue ;; esac
        said=$(orrery -q $command $arguments $option $place 2>&1 </dev/null)
        status=$?
        case $status/$said in
        4/$place:*) echo "orrery $command $option" >>checked ;;
        *) echo "orrery $command $arguments $option $place: status $status, $said" ;;
        esac
    done
done <files
sort -u checked
ls -d nowhere x x.* 2>/dev/null
exit 0
