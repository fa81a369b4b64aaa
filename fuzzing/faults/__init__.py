"""Kills and failed system calls: what every command that writes leaves behind.

    make faults KILLS=300 FAILURES=300

Each case starts from the same state, and lets one thing go wrong: the process is killed, or a system call
fails. After it, every file is as it was or as it should become, a failure has the right exit code and no
traceback, and the next run works and leaves nothing behind.
"""
