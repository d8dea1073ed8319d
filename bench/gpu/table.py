# SPDX-License-Identifier: Apache-2.0
"""A short table of one `warpcache-bench offline --json` or `warpcache-ablation --json` on standard input, and a
line for bench/results.

    table.py LINES OPTIONS MACHINE COMMIT

Appends the study to the file LINES, with how, where and when it was made.
"""

import datetime
import json
import sys

lines, options, machine, commit = sys.argv[1:]
study = json.loads(sys.stdin.read())
about = {"options": options, "machine": machine, "commit": commit, "date": datetime.date.today().isoformat()}
with open(lines, "a") as out:
    out.write(json.dumps(about | study) + "\n")

if "fabric" not in study:
    print("{device}, key {key_size}, value {value_size}, batches of {batch}".format(**study))
    for row in study["rows"]:
        index = f"  load {row['load']:.3f}, sectors {row['sectors']:.3f}" if "load" in row else ""
        print(
            f"  {row['experiment']:<9} {row['variant']:<11} {row['requests_per_s'] / 1e6:8.1f} M/s"
            f"  batch {row['batch_us']:8.2f} us  registers {row['registers']:3}"
            f"  shared {row['shared_bytes_of_block']:6}{index}  wrong {row['wrong']}"
        )
    sys.exit()
what = (
    "ping"
    if study["ping"]
    else "key {key_size}, value {value_size}, zipf {zipf}, hits {hit_ratio}, sets {set_share}".format(**study)
)
print(study["fabric"])
if "multiget" in study:
    what += f", {study['multiget']} keys a get"
print(f"{what}; the bus allows {study.get('bus_requests_per_s', 0) / 1e6:.0f} M/s")
if "offered_per_s" in study:
    print(f"offered {study['offered_per_s'] / 1e6:.0f} M/s")
for row in study["rows"]:
    print(
        f"  batch {row['batch']:>7} {row['requests_per_s'] / 1e6:8.1f} M/s"
        f"  p50 {row['batch_p50_us']:8.1f}  p99 {row['batch_p99_us']:8.1f} us"
        f"  {row.get('requests_per_j', 0) / 1e3:8.0f} k/J  {row.get('watts', 0):4.0f} W  wrong {row['wrong']}"
    )
    if "keys_per_s" in row:
        print(f"    {row['keys_per_s'] / 1e6:.1f} M keys/s")
    if "background_ms" in row:
        print(
            f"    background in {row['background_launches']} launches by {row['background_cut']}: {row['background_ms']:.1f} ms"
            f" ({row['background_alone_ms']:.1f} alone); mean {row['batch_mean_us']:.1f}, max {row['batch_max_us']:.1f} us"
        )
