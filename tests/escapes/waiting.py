# Connects to what has no room for more, while another thread exchanges what says whether that waits: the
# flag for it ("unix"), or the time ("inet").
import ctypes, fcntl, os, socket, struct, sys, threading, time
kind = sys.argv[1]
sys.setswitchinterval(1e-4)
libc = ctypes.CDLL(None, use_errno=True)
if kind == "unix":
    family, bound, flags = socket.AF_UNIX, "/tmp/full.sock", socket.SOCK_NONBLOCK
    address = struct.pack("H108s", family, bound.encode())
else:
    family, bound, flags = socket.AF_INET, ("127.0.0.1", 0), 0
server = socket.socket(family)
server.bind(bound)
server.listen(0)
if kind != "unix":
    bound = server.getsockname()
    address = struct.pack("!2s H 4s 8x", struct.pack("H", family), bound[1], bytes([127, 0, 0, 1]))
# Nobody accepts: after a few the queue is full.
held = []
for _ in range(4):
    one = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    one.connect_ex(bound)
    held.append(one)
time.sleep(0.2)
current = socket.socket(family, socket.SOCK_STREAM | flags)
forever = bytes(16)
def exchange():
    while True:
        number = current.fileno()
        if kind == "unix":
            libc.fcntl(number, fcntl.F_SETFL, os.O_NONBLOCK)
            libc.fcntl(number, fcntl.F_SETFL, 0)
        else:
            libc.setsockopt(number, socket.SOL_SOCKET, socket.SO_SNDTIMEO, forever, 16)
if kind == "unix":
    # As many as may wait at once, so that one that would wait is answered at once.
    for _ in range(64):
        one = socket.socket(family)
        held.append(one)
        threading.Thread(target=one.connect_ex, args=(bound,), daemon=True).start()
    time.sleep(0.5)
threading.Thread(target=exchange, daemon=True).start()
def connect():
    global current
    while True:
        if kind != "unix":
            current = socket.socket(family)
        libc.connect(current.fileno(), address, len(address))
for _ in range(40):
    threading.Thread(target=connect, daemon=True).start()
print("racing", flush=True)
time.sleep(60)
