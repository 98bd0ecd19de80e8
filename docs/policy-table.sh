#!/usr/bin/env bash
# Writes docs/policy-table.md: every policy of the registry on five workloads. Run it from the repository root.
# The two real traces are read from ../shared/data; where that is absent, the table is made without them.
set -euo pipefail

page=docs/policy-table.md
[ -f "${page%.md}.sh" ] || { echo "error: run this from the repository root" >&2; exit 1; }

cargo build --release --locked -p cli
bin=$(realpath "${CARGO_TARGET_DIR:-target}/release")
data=$(realpath -m ../shared/data)

work=$(mktemp -d)
unfinished=$(mktemp "$page.XXXXXX")
trap 'rm -rf "$work" "$unfinished"' EXIT

commands=""
traces=()

# Makes a trace: its name, the file that it needs or nothing, then what trace-gen is told.
make_trace() {
    local name=$1 needs=$2
    shift 2
    if [ -n "$needs" ] && [ ! -e "$needs" ]; then
        echo "skipped: $name, no $needs" >&2
        return
    fi
    # In the folder of the traces, here and below, so that no path of this machine gets into the page.
    (cd "$work" && "$bin/trace-gen" "$@" -o "$name.parquet")
    commands+="    trace-gen ${*//$data/../shared/data} -o $name.parquet"$'\n'
    traces+=(--trace "$name.parquet")
}

# Replays all traces, into a part of the page.
make_part() {
    local part=$1
    shift
    set -- "$@" --capacity 1%,5%,10%,25% --oracle --format markdown
    (cd "$work" && "$bin/replay" "${traces[@]}" "$@" --out "$part")
    commands+="    replay $* --trace ..."$'\n'
}

mooncake=$data/mooncake/conversation_trace.jsonl
claude=$data/claude-code-sessions
make_trace mooncake "$mooncake" import mooncake "$mooncake"
make_trace claude "$claude" import agentx "$claude"
make_trace agents "" agent --sessions 60 --seed 1
make_trace multi-agent "" multi-agent --sessions 60 --seed 1
make_trace mixed "" preset example --seed 1
make_part eviction.md --policy every
make_part admission.md --policy lru,cost-aware --admission every
swe_agent=$data/lmcache-agent-trace/miniswe
make_trace swe-agent "$swe_agent" import lmcache-agent "$swe_agent"
make_part states.md --model hybrid-7b --policy lru,cost-aware,marconi,sglang+ \
    --admission all,marconi,adaptive,checkpoint-every

cat - "$work/eviction.md" <(printf '\n## Admission\n\n') "$work/admission.md" \
    <(printf '\n## A hybrid model, which resumes only from saved states\n\n') "$work/states.md" >"$unfinished" <<END
# Every policy on five workloads

Made by \`docs/policy-table.sh\`, which is to be run again after every change of a policy; not to be edited. What the figures
tell stands in [policies.md](policies.md).

$commands
Capacities are shares of a trace's distinct blocks. A policy marked \`(hints)\` reads what the trace declares of the future, and
is never marked the best.

## Eviction

END
chmod 644 "$unfinished"
mv "$unfinished" "$page"
