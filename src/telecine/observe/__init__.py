"""Who watches: metrics, health, traces and log lines. They read, and change nothing but the counters."""
