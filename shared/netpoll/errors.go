package netpoll

import (
	"errors"
	"syscall"
)

var (
	// ErrWouldBlock says that a non-blocking call found nothing to do: wait for the next event. It is EAGAIN.
	ErrWouldBlock error = syscall.EAGAIN

	// ErrCanceled is what a request to a [Ring] has come to that was cancelled. It is ECANCELED.
	ErrCanceled error = syscall.ECANCELED

	// ErrUnsupported is the answer of every call on a system other than Linux.
	ErrUnsupported = errors.New("netpoll: this needs Linux (epoll, eventfd, timerfd)")

	// ErrShareRefused is wrapped by the error of [Listen] when the kernel does not know SO_REUSEPORT. One listener that hands
	// connections on does without it.
	ErrShareRefused = errors.New("this kernel refuses SO_REUSEPORT")
)

// IsExhausted says whether err means that the process or the machine has run out of descriptors or memory for them (EMFILE,
// ENFILE, ENOBUFS, ENOMEM): trying again at once is pointless, later it is not. It sees through wrapped errors.
func IsExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// AddressInUseError is the error of [Listen] when another socket holds the address. It wraps EADDRINUSE.
type AddressInUseError struct {
	Address string // as it was given to Listen
}

// Error is one line that says what to do.
func (e *AddressInUseError) Error() string {
	return "address " + e.Address + " is taken by another process: stop it or choose another with -addr"
}

// Unwrap is EADDRINUSE.
func (e *AddressInUseError) Unwrap() error { return syscall.EADDRINUSE }
