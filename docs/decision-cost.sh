#!/usr/bin/env bash
# Writes docs/decision-cost.md: what a request costs under every policy. Run it from the repository root, on a quiet machine.
set -euo pipefail

page=docs/decision-cost.md
[ -f "${page%.md}.sh" ] || { echo "error: run this from the repository root" >&2; exit 1; }
measured=$(mktemp)
unfinished=$(mktemp "$page.XXXXXX")
trap 'rm -f "$measured" "$unfinished"' EXIT

cargo bench --locked -p policies --bench decisions -- --noplot >"$measured"
{
    cat <<'END'
# What a decision costs

Made by `docs/decision-cost.sh` from `cargo bench -p policies --bench decisions`: nanoseconds a request, the cache included, at
so many leaves, and how often that is what LRU takes: the median of `lru`, `vllm`, `sglang+` and `vllm+`, which are all LRU here.
Measured on a machine of two shared cores: only the ratios mean much, and those only roughly. What makes a policy
dear stands in its `replay policies NAME`.

| policy | admission | 1,000 | 10,000 | 100,000 | over LRU | | |
|---|---|---:|---:|---:|---:|---:|---:|
END
    awk '
        # A measurement has its name before it, on its own line where it is long.
        match($0, /^[0-9]+ leaves\/[^ ]+ [^ ]+/) {
            name = substr($0, 1, RLENGTH)
            sub(/ leaves\//, " ", name)
            split(name, part, " ")
        }
        match($0, /time: *\[[^]]*\]/) {
            split(substr($0, RSTART, RLENGTH), word, /[][ ]+/)
            factor = word[5] == "ns" ? 1 : word[5] == "ms" ? 1e6 : 1e3
            pair = part[2] " " part[3]
            if (!(pair in seen)) order[++pairs] = pair
            seen[pair] = 1
            ns[pair, part[1]] = word[4] * factor
        }
        # The lower median of the policies that are LRU here.
        function lru(size,    name, count, at, sorted, other) {
            count = split("lru vllm sglang+ vllm+", name, " ")
            for (at = 1; at <= count; at++) {
                for (other = at; other > 1 && sorted[other - 1] > ns[name[at] " all", size]; other--)
                    sorted[other] = sorted[other - 1]
                sorted[other] = ns[name[at] " all", size]
            }
            return sorted[int((count + 1) / 2)]
        }
        END {
            sizes = split("1000 10000 100000", size, " ")
            for (row = 1; row <= pairs; row++) {
                split(order[row], pair_of, " ")
                line = "| `" pair_of[1] "` | `" pair_of[2] "` |"
                for (at = 1; at <= sizes; at++) line = line sprintf(" %.0f |", ns[order[row], size[at]])
                for (at = 1; at <= sizes; at++)
                    line = line sprintf(" %.1f |", ns[order[row], size[at]] / lru(size[at]))
                print line
            }
        }' "$measured"
} >"$unfinished"
chmod 644 "$unfinished"
mv "$unfinished" "$page"
