package netpoll

import "errors"

// ErrNoRing is wrapped by the error of [NewRing] where io_uring is not to be had: the kernel is
// older than 6.1, its administrator has switched it off (kernel.io_uring_disabled), or a
// container's seccomp profile forbids it.
var ErrNoRing = errors.New("io_uring is not to be had here")

// Sending says when a [Ring.Send] is complete, and whether anybody waits for that.
type Sending uint8

const (
	SendPatiently Sending = iota // when the socket has taken some: it waits for room
	SendAtOnce                   // as soon as it is submitted: ErrWouldBlock where there is no room
	SendAside                    // the same, and Ring.Enter goes on waiting for something else
)

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
