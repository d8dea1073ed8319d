# SPDX-License-Identifier: Apache-2.0
"""The well-behaved clients, in separate processes."""

from __future__ import annotations

import traceback
from collections import Counter

from soak.channel import Wrong
from soak.owner import Owner
from soak.rivals import Rivals
from soak.shared import CONTEXT, PATIENCE_S, Situation

OWNERS = 2  # in a process


def work(where: Situation, number: int, control) -> None:
    """Until told to end, then reads everything once more; `control` gets a report at the end.

    Told "verify" when no fault is at work any more.
    """
    clients: list[Owner | Rivals] = []
    report: Counter[str] = Counter()
    failure = None
    try:
        clients += [Owner(where, number * OWNERS + i) for i in range(OWNERS)]
        clients.append(Rivals(where, number))
        control.send("ready")
        while not control.poll(0):
            for client in clients:
                client.step()
        control.recv()
        for client in clients[:OWNERS]:
            client.verify()
    except (Wrong, OSError, ValueError) as problem:
        failure = f"{where.name}: {problem!r}\n{traceback.format_exc(limit=-3)}"
    for client in clients:
        report["operations"] += client.operations
        if isinstance(client, Owner):
            report["hits"] += client.hits
            report["refused"] += client.refused
        client.close()
    control.send((failure, report))


class ClientProcess:
    def __init__(self, where: Situation, number: int):
        self.control, theirs = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=work, args=(where, number, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def wait_ready(self) -> None:
        assert self.control.poll(PATIENCE_S), "an honest client does not start"
        first = self.control.recv()
        assert first == "ready", first

    def has_failed(self) -> bool:
        return self.control.poll(0)

    def finish(self, time_s_max: float) -> tuple[str | None, Counter[str]]:
        """The errors and the counts."""
        if not self.control.poll(0):
            self.control.send("verify")
        if not self.control.poll(time_s_max):
            self.kill()
            return "an honest client does not end", Counter()
        result = self.control.recv()
        self.process.join(time_s_max)
        return result

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
