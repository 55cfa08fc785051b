# What may be true at no moment, whatever happens. Reads the changes of all pods, in the
# order in which they happened, as `kubectl get pods -A --watch --output-watch-events -o
# json` prints them; prints a line for each moment at which something was wrong.
#   $nodes  list of the nodes, slurped: GPUs of each node
#   $lost   names of nodes whose machines are dead: what is left of their pods runs nowhere

def gpus: [.spec.containers[].resources.limits["nvidia.com/gpu"] // "0" | tonumber] | add // 0;

def summary: {
  name: .metadata.name,
  job: .metadata.labels["heterotrain.io/job-uid"],
  index: .metadata.labels["heterotrain.io/pod-index"],
  generation: (.metadata.labels["heterotrain.io/plan-revision"] // "0" | tonumber),
  node: .spec.nodeName,
  gpus: gpus,
  gated: ((.spec.schedulingGates // []) | length > 0),
  over: (.status.phase | IN("Succeeded", "Failed")),
};

($nodes[0].items | map({key: .metadata.name, value: (.status.capacity["nvidia.com/gpu"] // "0" | tonumber)})
  | from_entries) as $capacity
| reduce inputs as $event ({pods: {}, broken: []};
    ($event.object | summary) as $pod
    | $event.object.metadata.uid as $uid
    | .pods[$uid] as $before
    | if $event.type == "DELETED" then del(.pods[$uid]) else .pods[$uid] = $pod end
    | [.pods[] | select(.over | not)] as $live
    | [$live[] | select(.node != null and .node == $pod.node) | .gpus] as $here
    | (if $pod.node != null and ($here | add // 0) > ($capacity[$pod.node] // 0) and ($lost | index([$pod.node]) | not)
       then .broken += ["\($pod.name): \($here | add) GPUs in use on \($pod.node), which has \($capacity[$pod.node] // 0)"]
       else . end)
    | (if $pod.job != null and ($pod.gated | not) and ($before == null or $before.gated) and $event.type != "DELETED" then
         [$live[] | select(.job == $pod.job and .name != $pod.name and (.gated | not)
           and (.node == null or (.node as $node | $lost | index([$node]) | not)))] as $siblings
         | (if any($siblings[]; .generation < $pod.generation)
            then .broken += ["\($pod.name) could be scheduled while \([$siblings[] | select(.generation < $pod.generation) | .name] | join(", ")) still held GPUs"]
            else . end)
         | (if any($siblings[]; .generation == $pod.generation and .index == $pod.index)
            then .broken += ["\($pod.name): two pods of one rank"]
            else . end)
       else . end)
    | (if $event.object.status.reason != null and ($event.object.status.reason | startswith("OutOf"))
       then .broken += ["\($pod.name): \($event.object.status.reason)"]
       else . end))
| .broken | unique | .[]
