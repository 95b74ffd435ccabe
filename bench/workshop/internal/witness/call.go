package witness

import "errors"

// ErrUnsupported is what Launch answers where there is no ptrace(2).
var ErrUnsupported = errors.New("system calls cannot be watched here: that needs Linux")

// Call is one system call that has returned. It is valid during the observer's call only.
type Call struct {
	Number uintptr    // as in unix.SYS_RECVFROM
	Thread int        // that made it
	Args   [6]uintptr // as they were when it was made
	Result int64      // below zero: the errno

	process *Process
}

// Read fills b from the program's memory at that address, and says whether it could. It must be called
// by the observer, while the thread is held.
func (c *Call) Read(b []byte, address uintptr) bool { return c.process.read(b, address) }
