"""What a run leaves on disk: names and plain JSON records. No torch, no planner."""

CONFIG = "config.json"
EPISODES = "episodes.jsonl"
VALIDATION = "validation.jsonl"
RESULTS = "results.jsonl"
POLICY = "policy.safetensors"
CHECKPOINT = "checkpoint.safetensors"
