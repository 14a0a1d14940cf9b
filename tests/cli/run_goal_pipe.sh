# A schedule that comes through a pipe is read once: nobody looks into it before.
mkfifo pipe
printf 'num_ranks 2\nrank 0 {\nl1: send 100b to 1 tag 1\n}\nrank 1 {\nl1: recv 100b from 0 tag 1\n}\n' > file
cat file > pipe &
orrery run pipe > from_pipe
wait
orrery run file > from_file
orrery run - < file > from_input
cat from_file
cmp from_pipe from_file && cmp from_input from_file && echo same
