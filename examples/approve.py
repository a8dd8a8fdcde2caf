#!/usr/bin/env python3
"""Answer the requests of a confined command over `--approve-fd`.

    examples/approve.py [--answer once|thread|always|deny] ringfence run --request-host a.org -- CMD

Without --answer the question is printed and the answer read from standard input. docs/APPROVALS.md
describes the lines that go over the descriptor.
"""
import argparse
import json
import socket
import subprocess
import sys
import threading


def answer(question, fixed):
    if fixed:
        return fixed
    print("command:", question["command_shown"], file=sys.stderr)
    if "obstacle" in question:
        print("the sandbox cannot be made:", question["obstacle"], file=sys.stderr)
    for line in question["permissions_shown"] + question["warnings"]:
        print("   ", line, file=sys.stderr)
    word = input(f"{'/'.join(question['answers'])}? ").strip()
    return word if word in question["answers"] else "deny"


def serve(connection, fixed):
    with connection.makefile("rw", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            question = json.loads(line)
            if question["version"] != 1:
                return  # hanging up is a no
            # The id and the binding say which question this is an answer to.
            reply = {
                "version": 1,
                "id": question["id"],
                "binding": question["binding"],
                "answer": answer(question, fixed),
            }
            lines.write(json.dumps(reply) + "\n")
            lines.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--answer")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    ours, theirs = socket.socketpair()
    program, verb, *rest = options.command
    with theirs:
        flag = ["--approve-fd", str(theirs.fileno())]
        child = subprocess.Popen([program, verb, *flag, *rest], pass_fds=[theirs.fileno()])
    threading.Thread(target=serve, args=(ours, options.answer), daemon=True).start()
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
