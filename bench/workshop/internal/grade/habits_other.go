//go:build !linux

package grade

import "time"

type habit struct {
	waits int64
	cpu   time.Duration
}

func habits(int) map[string]habit { return nil }

func waiting(int) map[string]bool { return nil }

func wroteSoFar(int) int64 { return -1 }
