package grade

import "crypto/rand"

// markVariable is in the environment of all that a server starts, unless it takes care to remove it.
const markVariable = "QPS_LADDER_GRADED_RUN"

// NewMark is an environment entry by which EndMarked finds what a program has started.
func NewMark() string { return markVariable + "=" + rand.Text() }
