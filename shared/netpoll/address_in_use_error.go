package netpoll

import "syscall"

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
