package netpoll

import "syscall"

// consult asks Fault before a system call. It is small enough to be inlined: in production, one comparison.
func consult(call Call, fd int) (n int, errno syscall.Errno, injected bool) {
	if Fault != nil {
		n, errno, injected = inject(call, fd)
	}
	return
}

func inject(call Call, fd int) (n int, errno syscall.Errno, injected bool) {
	n, err, injected := Fault(call, fd)
	if !injected || err == nil {
		return n, 0, injected
	}
	errno, ok := err.(syscall.Errno)
	if !ok {
		panic("netpoll: Fault must answer with a syscall.Errno")
	}
	return -1, errno, true
}

// failure is errno as an error: nil for 0. Errno values this small are boxed without an allocation.
func failure(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
