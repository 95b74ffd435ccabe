package grade

import "maps"

// What a record counts, by the names that figures have.
const (
	reads           = "reads"
	readsElsewhere  = "reads by another thread than the one that waited"
	writes          = "writes"
	writesElsewhere = "writes by another thread than the one that waited"
	epollWait       = "epoll_wait"
	epollCtl        = "epoll_ctl"
	accepts         = "accept"
	enters          = "enters"
	wakeUps         = "wake-ups"
	wokenLoops      = "wake-ups of a loop by another thread"
	timerfdSettime  = "timerfd_settime"
	timerfdCreate   = "timerfd_create"
	futex           = "futex"
	fromMemory      = "bytes sent from memory"
	heldBack        = "waits while MSG_MORE holds something back"
	closedAgain     = "close of a descriptor that is not open"
)

// largePiece is from how many bytes on the address of a piece that is sent is noted.
const largePiece = 16 << 10

// snapshot copies the calls seen so far.
func (r *record) snapshot() map[string]int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return maps.Clone(r.calls)
}

// piece is memory that was sent.
type piece struct{ address, size uintptr }

// places is from how many addresses pieces of that size were sent.
func (r *record) places(size uintptr) (n int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for p := range r.bodies {
		if p.size == size {
			n++
		}
	}
	return n
}

// larges is how many places large pieces were sent from.
func (r *record) larges() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.bodies)
}

// restart begins to look for the most sockets read in a row anew.
func (r *record) restart() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.mostRead = 0
}

// most is how many sockets a thread has read at most between two waits.
func (r *record) most() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.mostRead
}

// firstRoom is the most that the first read after a wait had room for, in bytes.
func (r *record) firstRoom() uintptr {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.room
}
