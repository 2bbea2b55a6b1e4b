"""A desktop for paddock-window: a screen (Xvfb), a session bus (dbus-daemon), and on it the services that a desktop has, as far as
the program uses them: notices, the tray's watcher and the portal's settings. What they are asked is kept for tests to look at."""

import base64
import contextlib
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path

from gi.repository import Gio, GLib

import paddock
import screen

APP, APP_PATH = "org.paddock.Window", "/org/paddock/Window"
BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen>
<policy context="default"><allow user="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""
SERVICES = """<node>
<interface name="org.freedesktop.Notifications">
 <method name="Notify"><arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/><arg type="s" direction="in"/>
  <arg type="s" direction="in"/><arg type="as" direction="in"/><arg type="a{sv}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/></method>
 <method name="CloseNotification"><arg type="u" direction="in"/></method>
</interface>
<interface name="org.kde.StatusNotifierWatcher">
 <method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
 <property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
</interface>
<interface name="org.freedesktop.portal.Settings">
 <method name="Read"><arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="v" direction="out"/></method>
</interface></node>"""
PATHS = {"org.freedesktop.Notifications": "/org/freedesktop/Notifications", "org.kde.StatusNotifierWatcher": "/StatusNotifierWatcher",
         "org.freedesktop.portal.Settings": "/org/freedesktop/portal/desktop"}
OWNED = ("org.freedesktop.Notifications", "org.kde.StatusNotifierWatcher", "org.freedesktop.portal.Desktop")


HOME = "Overview · Paddock"  # the title of the dashboard's first page


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Desktop:
    """Everything ends with the test process."""

    def __init__(self, user=0):
        """`user`: whose desktop it is."""
        # Not below /tmp or /var/tmp: WebKit's sandbox has its own of those, and links one to the other.
        self.base, self.user = Path(tempfile.mkdtemp(prefix="pdk-window-", dir="/var/lib" if user else "/root")), user
        os.chown(self.base, user, user)
        self.screens, self.notices, self.closed, self.items = [], [], [], []
        self.has_tray, self.dark = False, 0
        config = self.base / "bus.conf"
        config.write_text(BUS_CONFIG.format(path=self.base / "bus"))
        self.bus_process = subprocess.Popen(["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"], stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, preexec_fn=paddock.die_with_parent)
        self.address = self.bus_process.stdout.readline().decode().strip()
        read, write = os.pipe()
        self.x_process = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x860x24", "-nolisten", "tcp", "-ac", "-fbdir", self.base],
                                          pass_fds=[write], stderr=subprocess.DEVNULL, preexec_fn=paddock.die_with_parent)
        os.close(write)
        with open(read) as number:
            self.display = ":" + number.readline().strip()
        self.serve()

    def serve(self):
        """The services, on a thread with a loop of its own."""
        self.context, ready = GLib.MainContext.new(), threading.Event()
        self.loop = GLib.MainLoop.new(self.context, False)

        def run():
            self.context.push_thread_default()
            flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
            self.bus = Gio.DBusConnection.new_for_address_sync(self.address, flags, None, None)
            for interface in Gio.DBusNodeInfo.new_for_xml(SERVICES).interfaces:
                self.bus.register_object(PATHS[interface.name], interface, self.on_call, self.on_get, None)
            for name in OWNED:
                self.ask("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName", GLib.Variant("(su)", (name, 0)))
            ready.set()
            self.loop.run()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        assert ready.wait(30)

    def on_call(self, _bus, sender, _path, _interface, method, parameters, call):
        answer = None
        if method == "Notify":
            self.notices.append(parameters.unpack())
            answer = GLib.Variant("(u)", (len(self.notices),))
        elif method == "CloseNotification":
            self.closed.append(parameters.unpack()[0])
        elif method == "RegisterStatusNotifierItem":
            self.items.append((sender, parameters.unpack()[0]))
        elif method == "Read":
            answer = GLib.Variant("(v)", (GLib.Variant("v", GLib.Variant("u", self.dark)),))
        call.return_value(answer)

    def on_get(self, *_):
        return GLib.Variant("b", self.has_tray)

    def ask(self, name, path, interface, method, parameters=None):
        return self.bus.call_sync(name, path, interface, method, parameters, None, Gio.DBusCallFlags.NONE, 30_000, None)

    def emit(self, interface, signal, parameters=None):
        self.bus.emit_signal(None, PATHS[interface], interface, signal, parameters)

    def set_tray(self, shown):
        self.has_tray = shown
        self.emit("org.kde.StatusNotifierWatcher", "StatusNotifierHostRegistered")

    def set_dark(self, dark):
        self.dark = int(dark)
        self.emit("org.freedesktop.portal.Settings", "SettingChanged",
                  GLib.Variant("(ssv)", ("org.freedesktop.appearance", "color-scheme", GLib.Variant("u", self.dark))))

    def owner(self, name):
        with contextlib.suppress(GLib.Error):
            return self.ask("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetNameOwner", GLib.Variant("(s)", (name,))).unpack()[0]
        return None

    def item(self, name):
        """A property of the tray's item that registered last."""
        sender, _ = self.items[-1]
        return self.ask(sender, "/StatusNotifierItem", "org.freedesktop.DBus.Properties", "Get",
                        GLib.Variant("(ss)", ("org.kde.StatusNotifierItem", name))).unpack()[0]

    def menu(self):
        """{label: id} of the tray's menu."""
        layout = self.ask(self.items[-1][0], "/MenuBar", "com.canonical.dbusmenu", "GetLayout", GLib.Variant("(iias)", (0, -1, []))).unpack()
        return {child[1].get("label"): child[0] for child in layout[1][2]}

    def click(self, label):
        self.ask(self.items[-1][0], "/MenuBar", "com.canonical.dbusmenu", "Event",
                 GLib.Variant("(isvu)", (self.menu()[label], "clicked", GLib.Variant("s", ""), 0)))

    def shoot(self, **part):
        return screen.shoot(self.base / "Xvfb_screen0", **part)

    def environment(self, **extra):
        """Of a user of its own; nothing of the machine's."""
        home = self.base / "home"
        home.mkdir(exist_ok=True)
        tools = self.base / "tools"
        tools.mkdir(exist_ok=True)
        opener = tools / "xdg-open"
        opener.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$1\" >> {self.base}/opened\n")
        opener.chmod(0o755)
        os.chown(home, self.user, self.user)
        return paddock.clean_environment(
            DISPLAY=self.display, DBUS_SESSION_BUS_ADDRESS=self.address, HOME=home, XDG_RUNTIME_DIR=self.base, XDG_CONFIG_HOME=home / ".config",
            XDG_STATE_HOME=home / "state", XDG_DATA_HOME=home / "data", XDG_CACHE_HOME=home / "cache", XDG_DOWNLOAD_DIR=home, PATH=f"{tools}:{os.environ['PATH']}", GDK_BACKEND="x11",
            NO_AT_BRIDGE="1", LC_ALL="C", **extra)

    def opened(self):
        """The addresses that the user's browser was asked to show."""
        with contextlib.suppress(FileNotFoundError):
            return (self.base / "opened").read_text().splitlines()
        return []

    def stop(self):
        self.loop.quit()
        for process in self.x_process, self.bus_process:
            process.terminate()
            process.wait(20)
        subprocess.run(["rm", "-rf", self.base], check=True)


class Window:
    """paddock-window on a desktop. `wrap` stands before its command."""

    def __init__(self, desktop, *arguments, wrap=(), **environment):
        self.desktop = desktop
        self.environment = desktop.environment(**environment)
        self.log = desktop.base / "log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*wrap, paddock.BIN / "paddock-window", *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, preexec_fn=paddock.die_with_parent)

    def status(self):
        try:
            answer = self.desktop.ask(APP, APP_PATH, "org.gtk.Actions", "Describe", GLib.Variant("(s)", ("status",))).unpack()
        except GLib.Error:
            assert self.process.poll() is None, f"ended with {self.process.returncode}\n{self.log.read_text()}"
            return {}
        return json.loads(answer[0][2][0])

    def until(self, what, **expected):
        """Waits until its status has these values; returns it."""
        last = {}

        def fits():
            last.update(self.status())
            for name in "title", "approvals":  # pages put the number of requests in front of it
                last[name] = re.sub(r"^\(\d+\) ", "", last.get(name) or "")
            return last if all(last.get(key) == value for key, value in expected.items()) else None

        try:
            return paddock.until(fits, what, 60)
        except AssertionError as e:
            raise AssertionError(f"{e}: {last}\n{self.log.read_text()[-3000:]}") from None

    def again(self, *arguments):
        """Another start of the program, to its end."""
        return subprocess.run([paddock.BIN / "paddock-window", *arguments], env=self.environment, capture_output=True, text=True, timeout=60 * paddock.SLOW)

    def processes(self):
        """{pid: name} of it and everything below."""
        return {pid: paddock.comm(pid) for pid in [self.process.pid, *paddock.descendants(self.process.pid)]}

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(30)


class Inspector:
    """WebKit's remote inspector, over its WebSocket: what a developer would type into the console."""

    def __init__(self, port, address=""):
        self.port, self.count, self.target = port, 0, None
        self.connect(paddock.until(lambda: self.place(address), f"a page at {address} to inspect", 60))

    def place(self, address):
        """The socket of the first page whose address has this in it."""
        try:
            text = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=10).read().decode()
        except OSError:
            return None
        pages = re.findall(r'class="targeturl">(.*?)</div>.*?(/socket/\d+/\d+/WebPage)', text)
        return next((place for url, place in pages if address in url), None)

    def connect(self, place):
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60 * paddock.SLOW)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {place} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        assert b" 101 " in self.file.readline()
        while self.file.readline().strip():
            pass
        while self.target is None:
            self.handle(self.receive())

    def receive(self):
        text = b""
        while True:
            first, length = self.file.read(2)
            length &= 127
            if length == 126:
                length, = struct.unpack(">H", self.file.read(2))
            elif length == 127:
                length, = struct.unpack(">Q", self.file.read(8))
            text += self.file.read(length)
            if first & 15 in (0, 1) and first & 128:
                return json.loads(text)
            assert first & 15 in (0, 1, 9, 10), first

    def send(self, message):
        data, mask = json.dumps(message).encode(), os.urandom(4)
        head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else b"\x81\xfe" + struct.pack(">H", len(data))
        self.socket.sendall(head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))

    def handle(self, message):
        """Keeps the page's target; returns what the page itself says, if it is that."""
        parameters = message.get("params", {})
        if message.get("method") == "Target.targetCreated" and parameters["targetInfo"]["type"] == "page" and not parameters["targetInfo"].get("isProvisional"):
            self.target = parameters["targetInfo"]["targetId"]
        elif message.get("method") == "Target.didCommitProvisionalTarget":
            self.target = parameters["newTargetId"]
        elif message.get("method") == "Target.dispatchMessageFromTarget":
            return json.loads(parameters["message"])
        return None

    def call(self, method, **parameters):
        self.count += 1
        inner = json.dumps({"id": self.count, "method": method, "params": parameters})
        self.send({"id": self.count, "method": "Target.sendMessageToTarget", "params": {"targetId": self.target, "message": inner}})
        while True:
            answer = self.handle(self.receive())
            if answer and answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]

    def run(self, script, gesture=False):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, emulateUserGesture=gesture)
        assert not answer.get("wasThrown"), answer
        return answer["result"].get("value")

    def settle(self, script):
        """The value of a promise."""
        answer = self.call("Runtime.evaluate", expression=script)
        answer = self.call("Runtime.awaitPromise", promiseObjectId=answer["result"]["objectId"], returnByValue=True)
        assert not answer.get("wasThrown"), answer
        return answer["result"].get("value")

    def close(self):
        self.file.close()
        self.socket.close()


class ClientMessage(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int), ("display", ctypes.c_void_p), ("window", ctypes.c_ulong),
                ("message_type", ctypes.c_ulong), ("format", ctypes.c_int), ("data", ctypes.c_long * 5), ("pad", ctypes.c_long * 24)]


class X:
    """The screen's windows, as a window manager would see them."""

    def __init__(self, display):
        self.lib = ctypes.CDLL("libX11.so.6")
        self.lib.XOpenDisplay.restype = ctypes.c_void_p
        self.lib.XDefaultRootWindow.restype = ctypes.c_ulong
        self.lib.XInternAtom.restype = ctypes.c_ulong
        self.display = ctypes.c_void_p(self.lib.XOpenDisplay(display.encode()))
        assert self.display

    def atom(self, name):
        return ctypes.c_ulong(self.lib.XInternAtom(self.display, name.encode(), 0))

    def children(self):
        """Windows of the root, the lowest first."""
        root, parent, count, found = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_uint(), ctypes.POINTER(ctypes.c_ulong)()
        top = ctypes.c_ulong(self.lib.XDefaultRootWindow(self.display))
        assert self.lib.XQueryTree(self.display, top, ctypes.byref(root), ctypes.byref(parent), ctypes.byref(found), ctypes.byref(count))
        return [found[at] for at in range(count.value)]

    def property(self, window, name, wide=False):
        kind, bits, count, rest, data = ctypes.c_ulong(), ctypes.c_int(), ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_void_p()
        self.lib.XGetWindowProperty(self.display, ctypes.c_ulong(window), self.atom(name), ctypes.c_long(0), ctypes.c_long(256), 0, ctypes.c_ulong(0),
                                    ctypes.byref(kind), ctypes.byref(bits), ctypes.byref(count), ctypes.byref(rest), ctypes.byref(data))
        if not data:
            return [] if wide else ""
        return list(ctypes.cast(data, ctypes.POINTER(ctypes.c_ulong))[:count.value]) if wide else ctypes.string_at(data, count.value).decode()

    def find(self, title):
        """The window whose title ends with this."""
        return next((window for window in self.children() if self.property(window, "_NET_WM_NAME").endswith(title)), None)

    def is_above(self, window):
        return self.atom("_NET_WM_STATE_ABOVE").value in self.property(window, "_NET_WM_STATE", wide=True)

    def ask_to_close(self, title):
        window = paddock.until(lambda: self.find(title), f"a window {title}")
        message = ClientMessage(type=33, window=window, message_type=self.atom("WM_PROTOCOLS").value, format=32)
        message.data[0] = self.atom("WM_DELETE_WINDOW").value
        assert self.lib.XSendEvent(self.display, ctypes.c_ulong(window), 0, ctypes.c_long(0), ctypes.byref(message))
        self.lib.XFlush(self.display)
