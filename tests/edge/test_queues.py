# SPDX-License-Identifier: Apache-2.0
"""Another process drives EDGE's queues through shared memory, with what docs/edge.md says of their bytes, and nothing else."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import subprocess
import time
from multiprocessing import get_context
from pathlib import Path

import pytest

from harness.patience import PATIENCE_S
from harness.programs import find_program


# The document's numbers.
MAGIC = b"WAPEDGE1"
TABLE, ENTRY = 4096, 256
OPEN = 1
HEAD, TAIL = 64, 128
CLOSED = 1 << 63
FREE = 0xFFFFFFFF
FAULT, CANCELLED = 0xFFFFFFF0, 0xFFFFFFF1

# The events of edge_host, in the order of their registration.
COUNT, ADD, FAIL, SPIN, TRAP = range(5)


class Region:
    """The queues in a file."""

    def __init__(self, path: Path):
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        assert self.memory[:8] == MAGIC
        self.version, self.events, self.bytes, self.state = struct.unpack_from("<IIQI", self.memory, 8)
        assert self.version == 1 and self.bytes == len(self.memory)

    def word(self, at: int) -> int:
        return struct.unpack_from("<Q", self.memory, at)[0]

    def put(self, at: int, value: int) -> None:
        struct.pack_into("<Q", self.memory, at, value)


class Queue:
    """One event's queues, as its only submitter and its only consumer."""

    def __init__(self, region: Region, event: int):
        self.region = region
        self.at = TABLE + event * ENTRY
        facts = struct.unpack_from("<IIIIIIQQ", region.memory, self.at)
        state, self.function, self.depth, self.words, self.stride, self.flags, self.submissions, self.completions = facts
        assert state == OPEN
        self.tail = region.word(self.at + TAIL)

    @property
    def head(self) -> int:
        return self.region.word(self.at + HEAD)

    def submit(self, *parameters: int, blocks: int = 0, ring: bool = True) -> int | None:
        """The event's number, or None: the queue is full."""
        head = self.head
        assert not head & CLOSED
        if self.region.word(self.completions + 8 * (head % self.depth)) != (self.number(head) << 32 | FREE):
            return None
        self.region.put(self.at + HEAD, (head + 1) & 0xFFFFFFFF)
        self.fill(head, *parameters, blocks=blocks, ring=ring)
        return self.number(head)

    def fill(self, position: int, *parameters: int, blocks: int = 0, ring: bool = True) -> None:
        assert len(parameters) == self.words
        entry = self.submissions + position % self.depth * self.stride
        number = self.number(position) << 32
        for i, word in enumerate(parameters):
            self.region.put(entry + 8 + 8 * i, number | word)
        if ring:
            self.region.put(entry, number | blocks)

    @staticmethod
    def number(position: int) -> int:
        return (position + 1) & 0xFFFFFFFF

    def poll(self) -> tuple[int, int] | None:
        """The oldest event, if it has completed: its number and its code."""
        at = self.completions + 8 * (self.tail % self.depth)
        word = self.region.word(at)
        number = self.number(self.tail)
        if word >> 32 != number or word & 0xFFFFFFFF == FREE:
            return None
        self.region.put(at, ((number + self.depth) & 0xFFFFFFFF) << 32 | FREE)
        self.tail = (self.tail + 1) & 0xFFFFFFFF
        self.region.put(self.at + TAIL, self.tail)
        return number, word & 0xFFFFFFFF

    def wait(self) -> tuple[int, int]:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            done = self.poll()
            if done is not None:
                return done
            time.sleep(0.0002)
        raise TimeoutError(f"event {self.number(self.tail)} does not complete")


class Host:
    """The process that has the GPU."""

    def __init__(self, folder: Path, *options: str):
        self.queues = folder / "queues"
        self.counters = folder / "counters"
        program = host_program()
        self.process = subprocess.Popen(
            [program, self.queues, self.counters, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "SIMT_GPU": "1"},
        )
        self.base = self.wait_until_ready()

    def wait_until_ready(self) -> int:
        for line in self.process.stdout:
            if line.startswith("ready"):
                self.pid = int(line.split()[4])  # of the process that has the GPU
                return int(line.split()[2])
            if self.process.poll() == 77 or line.startswith("no GPU"):
                break
        self.process.wait()
        pytest.skip("there is no GPU")

    def counting(self, index: int) -> tuple[int, int, int, int]:
        return self.base & 0xFFFFFFFF, self.base >> 32, index, 0

    def counts(self, count: int) -> tuple[int, ...]:
        with self.counters.open("rb") as file:
            return struct.unpack(f"<{count}I", file.read(4 * count))

    def end(self) -> int:
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


def host_program() -> Path:
    program = find_program("edge_host", "EDGE_HOST")
    if program is None:
        pytest.skip("edge_host is not built")
    return program


@pytest.fixture
def folder(tmp_path):
    """In memory, where that is: other processes and the GPU share pages of files there."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    own = shared / f"edge-{os.getpid()}-{time.monotonic_ns()}"
    own.mkdir()
    yield own
    for path in own.iterdir():
        path.unlink()
    own.rmdir()


@pytest.fixture
def host(folder):
    started = Host(folder)
    yield started
    if started.process.poll() is None:
        assert started.end() == 0


def test_an_event_runs(host):
    queue = Queue(Region(host.queues), ADD)
    assert queue.submit(40, 2) == 1
    assert queue.wait() == (1, 42)


def test_the_words_of_an_entry_come_in_any_order(host):
    queue = Queue(Region(host.queues), ADD)
    number = queue.submit(1, 2, ring=False)
    region, entry = queue.region, queue.submissions
    region.put(entry + 8, 0)  # the first parameter is late, the doorbell early
    region.put(entry, number << 32)
    time.sleep(0.2)
    assert queue.poll() is None
    region.put(entry + 8, number << 32 | 1000)
    assert queue.wait() == (number, 1002)


def test_each_event_runs_once_through_wraps_and_a_full_queue(host):
    queue = Queue(Region(host.queues), COUNT)
    events = 4 * queue.depth + 5
    submitted = completed = refused = 0
    end = time.monotonic() + PATIENCE_S
    while completed < events:
        assert time.monotonic() < end
        if submitted < events:
            if queue.submit(*host.counting(submitted)) is None:
                refused += 1
            else:
                submitted += 1
                continue
        done = queue.poll()
        if done is not None:
            completed += 1
            assert done == (completed, 0)
    assert refused > 0
    assert host.counts(events + 1) == (1,) * events + (0,)


def test_an_entry_says_how_many_blocks_its_event_has(host):
    queue = Queue(Region(host.queues), COUNT)
    queue.submit(*host.counting(3), blocks=7)
    queue.submit(*host.counting(4))
    queue.wait()
    queue.wait()
    assert host.counts(5) == (0, 0, 0, 7, 1)


def test_an_event_kernel_that_fails_ends_its_event_with_its_code(host):
    region = Region(host.queues)
    fails, adds = Queue(region, FAIL), Queue(region, ADD)
    fails.submit(12345)
    assert fails.wait() == (1, 12345)
    adds.submit(1, 1)
    assert adds.wait() == (1, 2)


def test_parameters_that_change_in_flight(host):
    """The event has the old ones or the new ones, and runs once."""
    queue = Queue(Region(host.queues), ADD)
    for round_ in range(50):
        position = queue.head
        queue.submit(1000, 1)
        queue.fill(position, 2000, 1)
        assert queue.wait() in ((round_ + 1, 1001), (round_ + 1, 2001))
    assert queue.poll() is None


def test_what_did_not_run_is_cancelled_at_the_end(host):
    region = Region(host.queues)
    spins = Queue(region, SPIN)
    numbers = [spins.submit(20000) for _ in range(30)]
    assert host.end() == 0
    codes = [spins.wait() for _ in numbers]
    assert [number for number, _ in codes] == numbers
    assert {code for _, code in codes} <= {0, CANCELLED}
    assert codes[-1][1] == CANCELLED
    assert region.word(TABLE + SPIN * ENTRY + HEAD) & CLOSED


def ring(path: str, first: int, count: int, base: int, library: str) -> int:
    """Submits `count` events beside other submitters: `head` is moved by compare-and-swap."""
    atomic = ctypes.CDLL(library)
    swap = getattr(atomic, "__atomic_compare_exchange_8")
    swap.restype = ctypes.c_bool
    region = Region(Path(path))
    queue = Queue(region, COUNT)
    buffer = (ctypes.c_char * len(region.memory)).from_buffer(region.memory)
    head_word = ctypes.addressof(buffer) + queue.at + HEAD
    done = 0
    end = time.monotonic() + PATIENCE_S
    while done < count and time.monotonic() < end:
        head = queue.head
        if region.word(queue.completions + 8 * (head % queue.depth)) != (queue.number(head) << 32 | FREE):
            continue
        expected = ctypes.c_uint64(head)
        wanted = ctypes.c_uint64((head + 1) & 0xFFFFFFFF)
        if not swap(ctypes.c_void_p(head_word), ctypes.byref(expected), wanted, 5, 5):
            continue
        queue.fill(head, base & 0xFFFFFFFF, base >> 32, first + done, 0)
        done += 1
    return done


def test_two_processes_ring_the_same_doorbell(host):
    library = "libatomic.so.1"
    try:
        ctypes.CDLL(library)
    except OSError:
        pytest.skip("there is no libatomic")
    each = 200
    context = get_context("spawn")
    with context.Pool(2) as pool:
        rings = [pool.apply_async(ring, (str(host.queues), i * each, each, host.base, library)) for i in range(2)]
        queue = Queue(Region(host.queues), COUNT)
        for number in range(2 * each):
            assert queue.wait() == (number + 1, 0)
        assert [result.get(PATIENCE_S) for result in rings] == [each, each]
    assert host.counts(2 * each + 1) == (1,) * (2 * each) + (0,)


def test_the_queue_lives_when_a_kernel_faults(folder):
    host = Host(folder, "--keep-going")
    region = Region(host.queues)
    traps, counts = Queue(region, TRAP), Queue(region, COUNT)
    counts.submit(*host.counting(0))
    assert counts.wait() == (1, 0)
    assert traps.submit(0) == 1
    host.base = host.wait_until_ready()
    assert traps.wait() == (1, FAULT)
    for index in range(1, 100):
        counts.submit(*host.counting(index))
        assert counts.wait() == (index + 1, 0)
    assert host.counts(101) == (1,) * 100 + (0,)
    assert host.end() == 0


def test_no_event_is_lost_or_runs_twice_when_the_gpus_process_is_killed(folder):
    host = Host(folder, "--keep-going")
    queue = Queue(Region(host.queues), COUNT)
    codes = []
    for round_ in range(3):
        for _ in range(queue.depth):
            assert queue.submit(*host.counting(queue.head)) is not None
        for _ in range(round_ * 4):
            codes.append(queue.wait()[1])
        os.kill(host.pid, signal.SIGKILL)
        assert host.wait_until_ready() == host.base
        while len(codes) < (round_ + 1) * queue.depth:
            codes.append(queue.wait()[1])
    assert set(codes) <= {0, FAULT}
    counts = host.counts(len(codes))
    for code, count in zip(codes, counts):
        assert count == 1 if code == 0 else count <= 1
    assert host.end() == 0


def test_the_example_of_the_document():
    program = find_program("edge_example", "EDGE_EXAMPLE")
    if program is None:
        pytest.skip("edge_example is not built")
    done = subprocess.run([program], env={**os.environ, "SIMT_GPU": "1"}, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode == 77:
        pytest.skip(done.stdout)
    assert (done.returncode, done.stdout) == (0, "event 1: 42\n")


def test_the_benchmark_runs():
    program = find_program("edge_bench", "EDGE_BENCH")
    if program is None:
        pytest.skip("edge_bench is not built")
    done = subprocess.run(
        [program, "--quick", "latency"], env={**os.environ, "SIMT_GPU": "1"}, capture_output=True, text=True, timeout=5 * PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"what":"failure"' not in done.stdout
