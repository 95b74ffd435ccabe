//go:build !linux

package grade

import (
	"sync"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/witness"
)

type record struct {
	mutex    sync.Mutex
	calls    map[string]int
	mostRead int
	room     uintptr
	bodies   map[piece]bool
}

func newRecord() *record { return &record{} }

func (r *record) observe(*witness.Call) {}
