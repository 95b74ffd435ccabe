package netpoll

import "errors"

// ErrNoRing is wrapped by the error of [NewRing] where io_uring is not to be had: the kernel is older than 6.1, its
// administrator has switched it off (kernel.io_uring_disabled), or a container's seccomp profile forbids it.
var ErrNoRing = errors.New("io_uring is not to be had here")

// Operation says what a [Completion] is about.
type Operation uint8

const (
	OpWake    Operation = 1 + iota // another thread has called Wake
	OpAccept                       // a connection, of Accept or AcceptOne
	OpReceive                      // bytes that have arrived, or their end, of Receive
	OpSend                         // how much the kernel took, of Send
	OpTimer                        // the time of After is over
	opCancel                       // what a Cancel came to: nobody wants to know
)
