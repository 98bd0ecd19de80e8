#!/usr/bin/env bash
# Makes the five workloads, splits the sessions of each into a training half and a held-back half, replays both, and prints the
# tables of docs/cost-aware.md. Run it from the root of the repository after `cargo build --release`:
#
#     docs/tune-cost-aware.sh [FOLDER]        # FOLDER for the traces, by default target/tune-cost-aware
#
# SPLIT_SEED draws other halves (default 1), COST prices prefill otherwise (default course), POLICY puts another policy in
# the place of cost-aware, for instance POLICY='cost-aware(prior=16)'.
set -euo pipefail

bin=target/release
traces=${1:-target/tune-cost-aware}
seed=${SPLIT_SEED:-1}
cost=${COST:-course}
policy=${POLICY:-cost-aware}
capacities=1%,2%,5%,10%
data=../shared/data
workloads="mooncake claude agents multi-agent mixed"

[ -x "$bin/replay" ] || { echo "first: cargo build --release" >&2; exit 1; }
mkdir -p "$traces"

# make NAME ARGUMENTS: a workload, once.
make_trace() {
    local out="$traces/$1.parquet"
    shift
    [ -e "$out" ] || "$bin/trace-gen" "$@" -o "$out" >&2
}

if [ -d "$data" ]; then
    make_trace mooncake import mooncake "$data/mooncake/conversation_trace.jsonl"
    make_trace claude import agentx "$data/claude-code-sessions"
else
    echo "skipped: no ../shared, so no mooncake and no claude" >&2
    workloads="agents multi-agent mixed"
fi
make_trace agents agent --sessions 60 --seed 1
make_trace multi-agent multi-agent --sessions 60 --seed 1
make_trace mixed preset example --seed 1

# In mooncake every request is a session of its own; what has a rare prefix in common is a conversation.
for name in $workloads; do
    by=session
    [ "$name" = mooncake ] && by=prefix
    half="$bin/trace-gen sample $traces/$name.parquet --share 0.5 --seed $seed --by $by"
    $half -o "$traces/$name.train.parquet" >&2
    $half --rest -o "$traces/$name.held-back.parquet" >&2
done

# replays TRACE POLICIES [FLAG]: a line a run, with capacity, prefill recovered and the oracle's upper bound in per cent.
replays() {
    "$bin/replay" --trace "$1" --policy "$2" --capacity "$capacities" --cost "$cost" --format csv "${@:3}" |
        sed 's/"[^"]*"/quoted/g' |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { cold = $at["prefill_seconds_cold"]
              print 100 * $at["prefill_recovered"], 100 * $at["oracle_seconds_upper"] / cold }'
}

# Both halves beside each other; the change is that of the recovered seconds against LRU.
halves() {
    echo "| workload | capacity | lru | cost-aware | change | oracle at most | lru | cost-aware | change | oracle at most |"
    echo "|---|---|---|---|---|---|---|---|---|---|"
    for name in $workloads; do
        paste -d ' ' <(replays "$traces/$name.train.parquet" "lru,$policy" --oracle) \
            <(replays "$traces/$name.held-back.parquet" "lru,$policy" --oracle) |
            awk -v name="$name" -v capacities="$capacities" '
                BEGIN { split(capacities, capacity, ",") }
                NR % 2 == 1 { train = $1; held = $3; next }
                { printf "| %s | %s | %.2f | %.2f | %+.1f%% | %.2f | %.2f | %.2f | %+.1f%% | %.2f |\n", name, capacity[NR / 2],
                  train, $1, 100 * ($1 / train - 1), $2, held, $3, 100 * ($3 / held - 1), $4 }'
    done
}

# The estimators of p(reuse) beside each other, on the training halves.
estimators() {
    local all="lru"
    echo "| workload | capacity | lru | recency | frequency | kind | session | hazard |"
    echo "|---|---|---|---|---|---|---|---|"
    for p in recency frequency kind session hazard; do all+=",cost-aware(p=$p)"; done
    for name in $workloads; do
        replays "$traces/$name.train.parquet" "$all" |
            awk -v name="$name" -v capacities="$capacities" '
                BEGIN { split(capacities, capacity, ",") }
                NR % 6 == 1 { printf "| %s | %s", name, capacity[(NR + 5) / 6] }
                { printf " | %.2f", $1 }
                NR % 6 == 0 { print " |" }'
    done
}

echo "Prefill recovered in per cent, $cost, halves drawn by seed $seed: training half, then held-back half."
echo
halves
echo
echo "Estimators, training halves:"
echo
estimators
