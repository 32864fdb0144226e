#!/usr/bin/env python3
"""Tests tools/get-fashion-mnist with a local server: valid files are saved under their names, and failed downloads leave no file."""
import hashlib
import http.server
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "get-fashion-mnist"
SHELLS = [[shell] for shell in ("dash", "bash") if shutil.which(shell)]
SHELLS += [["busybox", "sh"]] if shutil.which("busybox") else []
LOADERS = [loader for loader in ("curl", "wget") if shutil.which(loader)]
NAMES = ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]
FILES = {name: name.encode() * 1000 for name in NAMES}
SUMS = "\n".join(f"{name} {hashlib.md5(content).hexdigest()}" for name, content in FILES.items())


class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requested, self.cut, self.stalled = dict(FILES), [], set(), threading.Event()
        self.release = threading.Event()
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/fashion/"

    def end(self):
        self.release.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/fashion/")
        self.server.requested.append(name)
        content = self.server.files.get(name)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if name in self.server.cut:  # sends half of the file, then waits until the test ends
            self.wfile.write(content[:len(content) // 2])
            self.wfile.flush()
            self.server.stalled.set()
            self.server.release.wait(60)
            return
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class GetFashion(unittest.TestCase):
    shell, loader = SHELLS[0], LOADERS[0] if LOADERS else None

    def setUp(self):
        if not self.loader:
            self.skipTest("neither curl nor wget")
        self.top = Path(tempfile.mkdtemp(prefix="tally-test-"))
        self.addCleanup(shutil.rmtree, self.top)
        self.target = self.top / "a folder" / "fashion"
        self.server = Server()
        self.addCleanup(self.server.end)
        tools = self.top / "bin"
        tools.mkdir()
        for name in ("md5sum", "mkdir", "rm", "mv", "dirname", "cat", self.loader):
            (tools / name).symlink_to(shutil.which(name))
        self.environment = {"PATH": str(tools), "TALLY_FASHION_MD5": SUMS, "TALLY_FASHION_URL": self.server.url}

    def command(self, *words):
        return [shutil.which(self.shell[0]), *self.shell[1:], str(TOOL), *map(str, words)]

    def get(self, *words, **environment):
        done = subprocess.run(self.command(*(words or [self.target])), env=self.environment | environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        self.assertEqual(done.stdout, "")
        return done

    def present(self):
        return {path.name: path.read_bytes() for path in self.target.iterdir()} if self.target.exists() else {}

    def test_all_four_files_arrive_and_are_requested_once(self):
        done = self.get()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.present(), FILES)
        self.assertEqual(self.server.requested, NAMES)
        self.assertEqual(self.get().returncode, 0)
        self.assertEqual(self.server.requested, NAMES)

    def test_a_wrong_or_missing_file_is_replaced_and_the_others_stay(self):
        self.get()
        (self.target / NAMES[1]).write_bytes(b"half a fi")
        (self.target / NAMES[2]).unlink()
        self.server.requested.clear()
        self.assertEqual(self.get().returncode, 0)
        self.assertEqual(self.server.requested, NAMES[1:3])
        self.assertEqual(self.present(), FILES)

    def test_a_file_with_a_wrong_checksum_leaves_nothing(self):
        self.server.files[NAMES[1]] = b"<html>welcome to this network</html>"
        done = self.get()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{NAMES[1]} is not the file it should be: its MD5 is", done.stderr)
        self.assertEqual(self.present(), {NAMES[0]: FILES[NAMES[0]]})

    def test_a_wrong_download_keeps_the_existing_file(self):
        self.get()
        (self.target / NAMES[0]).write_bytes(b"old")
        self.server.files[NAMES[0]] = b"wrong"
        self.assertEqual(self.get().returncode, 1)
        self.assertEqual(self.present(), FILES | {NAMES[0]: b"old"})

    def test_a_file_that_the_server_lacks_is_named_with_its_address(self):
        del self.server.files[NAMES[2]]
        done = self.get()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot download {self.server.url}{NAMES[2]}", done.stderr)
        self.assertEqual(sorted(self.present()), sorted(NAMES[:2]))

    def test_an_unreachable_server_is_an_error(self):
        done = self.get(self.target, "http://127.0.0.1:9")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot download http://127.0.0.1:9/{NAMES[0]}", done.stderr)
        self.assertEqual(self.present(), {})

    def test_a_download_that_is_interrupted_leaves_nothing(self):
        for sent in (signal.SIGINT, signal.SIGTERM):
            self.server.cut = {NAMES[0]}
            self.server.stalled.clear()
            running = subprocess.Popen(self.command(self.target), env=self.environment, stdin=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            self.assertTrue(self.server.stalled.wait(60))
            os.killpg(running.pid, sent)  # sends the signal as a terminal would
            self.assertNotEqual(running.wait(60), 0)
            self.assertEqual(self.present(), {})

    def test_a_connection_that_breaks_leaves_nothing(self):
        self.server.cut = {NAMES[0]}
        self.server.release.set()
        done = self.get()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.present(), {})

    def test_the_address_may_be_given(self):
        done = self.get(self.target, self.server.url.rstrip("/"), TALLY_FASHION_URL="http://127.0.0.1:9/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.present(), FILES)

    def test_a_folder_that_cannot_be_created_is_an_error(self):
        (self.top / "file").write_text("")
        done = self.get(self.top / "file" / "folder")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot make the folder", done.stderr)

    def test_without_curl_and_wget_the_error_says_what_to_install(self):
        (self.top / "bin" / self.loader).unlink()
        done = self.get()
        self.assertEqual(done.returncode, 1)
        self.assertIn("neither curl nor wget is here", done.stderr)

    def test_wrong_use_is_exit_code_2(self):
        self.assertEqual(self.get("a", "b", "c").returncode, 2)
        self.assertEqual(self.get("--folder").returncode, 2)


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for shell in SHELLS:
        for download in LOADERS or [None]:
            case = type(f"GetFashion_{shell[0]}_{download}", (GetFashion,), {"shell": shell, "loader": download})
            suite.addTests(loader.loadTestsFromTestCase(case))
    return suite


if __name__ == "__main__":
    if not LOADERS:
        print("skipped: neither curl nor wget")
        sys.exit(77)
    unittest.main()
