#!/usr/bin/env bash
# Writes docs/policy-table.md: every policy of the registry on five workloads. Run it from the repository root.
# The two real traces are read from ../shared/data; where that is absent, the table is made without them.
set -euo pipefail

table=docs/policy-table.md
data=../shared/data
[ -f "${table%.md}.sh" ] || { echo "error: run this from the repository root" >&2; exit 1; }

cargo build --release --locked -p cli
bin=$(realpath "${CARGO_TARGET_DIR:-target}/release")
data=$(realpath -m "$data")

work=$(mktemp -d)
page=$(mktemp "$table.XXXXXX")
trap 'rm -rf "$work" "$page"' EXIT

# Makes one trace: its name, what it needs (or nothing), then the arguments of trace-gen.
traces=()
make_trace() {
    local name=$1 needs=$2
    shift 2
    if [ -n "$needs" ] && [ ! -e "$needs" ]; then
        echo "skipped: $name, no $needs" >&2
        return
    fi
    "$bin/trace-gen" "$@" -o "$work/$name.parquet"
    traces+=(--trace "$name.parquet")
}

# Replays in the folder of the traces, so that no path of this machine gets into the page.
replay() {
    (cd "$work" && "$bin/replay" "${traces[@]}" --capacity 1%,5%,10%,25% --oracle --format markdown "$@")
}

mooncake=$data/mooncake/conversation_trace.jsonl
claude=$data/claude-code-sessions
make_trace mooncake "$mooncake" import mooncake "$mooncake"
make_trace claude "$claude" import agentx "$claude"
make_trace agents "" agent --sessions 60 --seed 1
make_trace multi-agent "" multi-agent --sessions 60 --seed 1
make_trace mixed "" preset example --seed 1

{
    cat <<'END'
# Every policy on five workloads

Made by `docs/policy-table.sh`, which is to be run again after every change of a policy; not to be edited. What the figures
tell stands in [policies.md](policies.md).

    trace-gen import mooncake ../shared/data/mooncake/conversation_trace.jsonl -o mooncake.parquet
    trace-gen import agentx ../shared/data/claude-code-sessions -o claude.parquet
    trace-gen agent --sessions 60 --seed 1 -o agents.parquet
    trace-gen multi-agent --sessions 60 --seed 1 -o multi-agent.parquet
    trace-gen preset example --seed 1 -o mixed.parquet
    replay --policy every --capacity 1%,5%,10%,25% --oracle --format markdown --trace ...
    replay --policy lru,cost-aware --admission every --capacity 1%,5%,10%,25% --oracle --format markdown --trace ...

Capacities are shares of a trace's distinct blocks. A policy marked `(hints)` reads what the trace declares of the future, and
is never marked the best.

## Eviction

END
    replay --policy every
    printf '\n## Admission\n\n'
    replay --policy lru,cost-aware --admission every
} >"$page"
chmod 644 "$page"
mv "$page" "$table"
