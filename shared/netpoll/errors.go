package netpoll

import (
	"errors"
	"syscall"
)

var (
	// ErrWouldBlock says that a non-blocking call found nothing to do: wait for the next event. It is EAGAIN.
	ErrWouldBlock error = syscall.EAGAIN

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
