# SPDX-License-Identifier: Apache-2.0
"""Traces of MPI calls out of a number: the same files for the same number, on every machine.  Calls need not make
sense together; a schedule is made of each rank by itself."""

CALLS = ("Send Recv Rsend Ssend Isend Irecv Wait Wait Waitall Waitall Sendrecv Barrier Allreduce Iallreduce Bcast "
         "Allgather Scan Reduce Alltoall Alltoallv Scatter Gather Comm_rank Test Comm_split Wtime").split()
PERSISTENT = "Send_init Recv_init Start Request_free".split()
OPTIONS = [[], ["--traces-extr", "2"], ["--traces-extr", "3", "--timemult", "7"], ["--traces-print", "1"],
           ["--traces-nop2p"], ["--traces-nocolls", "--cpu", "3"], ["--traces-nbcify", "100"],
           ["--traces-nbcify", "100000", "--traces-print", "1"], ["--traces-nops", "3"],
           ["--nb", "500", "--nb-poll", "200", "--cpu", "1"]]


class Dice:
    """Knuth's linear congruential generator of 64 bits, the upper half of it."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 32) * n >> 32

    def among(self, items):
        return items[self.below(len(items))]


def arguments(dice, call, rank, ranks, step):
    """The values of a call between its two times."""
    address = str(1000000 + dice.below(10**9) * 1000)
    kind = f"{dice.below(99)},{dice.among([1, 4, 8])},{dice.below(9)}"
    count, peer, tag = str(dice.below(5000)), str(dice.below(ranks)), str(dice.among([0, 1, 99, 9999]))
    handle = dice.among([0, 64, 127, 1140850688, 5641280])
    comm = f"{handle},0,{ranks + 1}" if dice.below(10) == 0 else f"{handle},{rank},{ranks}"
    request = str(7000000 + step * dice.below(6))
    message = [address, count, kind, peer, tag, comm]
    if call in ("Send", "Rsend", "Ssend"):
        return message
    if call == "Recv":
        return message[:4] + [dice.among([tag, "-1"]), comm, address]
    if call in ("Irecv", "Isend", "Send_init", "Recv_init"):
        return message + [request]
    if call == "Sendrecv":
        return [address, count, kind, peer, tag, address, count, kind, str(dice.below(ranks)), tag, comm, address]
    if call in ("Start", "Request_free"):
        return [request]
    return {
        "Wait": [request, address],
        "Waitall": [str(dice.below(7)), request, address],
        "Barrier": [comm],
        "Allreduce": [address, address, count, kind, "3", comm],
        "Scan": [address, address, count, kind, "3", comm],
        "Iallreduce": [address, address, count, kind, "3", comm, request],
        "Bcast": [address, count, kind, peer, comm],
        "Allgather": [address, count, kind, address, count, kind, comm],
        "Alltoall": [address, count, kind, address, count, kind, comm],
        "Scatter": [address, count, kind, address, count, kind, peer, comm],
        "Gather": [address, count, kind, address, count, kind, peer, comm],
        "Reduce": [address, address, count, kind, "3", peer, comm],
    }.get(call, [address, comm])


def trace(dice, rank, ranks, is_atlahs):
    """The lines of one rank; times in whole microseconds, or in quarters."""
    quarters = dice.among([1, 4])
    time = dice.among([0, 1, 1225038833071959]) * quarters + dice.below(1000)

    def text(t):
        return str(t) if quarters == 1 else f"{t // 4}.{t % 4 * 25:02d}0000"

    lines = ["# collprof 0.9 output file", "# host: somewhere", "# Init clockdiff: 0.500000", ""]
    if is_atlahs and dice.below(3) == 0:
        lines.append("MPI_Init_thread:-:1:2:3:4:" + text(time))
    else:
        lines.append("MPI_Init:-:1407:1406:" + text(time))
    for _ in range(dice.below(40)):
        call = dice.among(CALLS + PERSISTENT if is_atlahs else CALLS)
        begin = time + dice.among([0, 1, dice.below(1000), dice.below(10**6)])
        time = begin + dice.among([0, dice.below(500)])
        values = arguments(dice, call, rank, ranks, 4 if is_atlahs else 8)
        lines.append(":".join([f"MPI_{call}", text(begin)] + values + [text(time)]))
    if dice.below(5):
        lines += ["# Finalize clockdiff: 0.000000", f"MPI_Finalize:{text(time + dice.below(99))}:-"]
    return "\n".join(lines) + "\n"


def make(number, folder):
    """Write the files of a case; gives (variant, the file of rank 0, options)."""
    dice = Dice(number)
    is_atlahs = number % 2 == 1
    ranks = 1 + dice.below(7)
    folder.mkdir()
    for rank in range(ranks):
        (folder / f"t-{rank}.dat").write_text(trace(dice, rank, ranks, is_atlahs))
    return ("atlahs" if is_atlahs else "lgs2023"), folder / "t-0.dat", OPTIONS[number // 2 % len(OPTIONS)]
