// Package netpoll holds thin, counted wrappers over the Linux system calls that an event loop lives on: epoll, eventfd,
// timerfd, sockets and vectored writes; and, for those who would rather be told what has been done than what could be,
// a [Ring] over io_uring. Each wrapper is one system call and one increment of a plain integer, so that a test can
// state how many system calls a request costs instead of guessing it from a clock.
//
// # Ownership
//
// A wrapper takes the *Counters of its caller. Counters are plain integers: each set belongs to one thread (a loop) and
// must not be shared. A loop shows them to others through a [Published], once per turn. Pass new(Counters) where nobody
// counts. A descriptor belongs to whoever opened it and is given back with [Close], once.
//
// # Blocking
//
// All calls but two never block, and go through raw system calls that do not tell the Go scheduler: no other goroutine
// can take over the processor meanwhile, and none needs to, for they last microseconds. The descriptors given to
// them must therefore be non-blocking; all that this package opens are. Those that may block are
// [Ring.Enter], which tells the scheduler, and [Poller.Wait]: without a time limit it begins raw as well, and once a
// signal has interrupted it, it tells the scheduler and waits on.
//
// No call allocates, apart from those that open something or build an error text: [NewPoller], [NewRing], [NewVector],
// [Listen], [ParseAddress], [CPUs].
//
// # Errors
//
// Errors are [syscall.Errno] values as the manual pages list them, with two exceptions: the end of input is io.EOF, and
// EAGAIN is spelt [ErrWouldBlock]. They can be compared with ==. EINTR never reaches a caller. Off Linux everything
// compiles and answers [ErrUnsupported].
//
// # Race detector
//
// The race detector sees neither the kernel's writes into a buffer nor the order that an eventfd or an epoll brings
// between threads. Data that passes from one thread to another needs a lock or an atomic of its own.
//
// # What does not belong here
//
// HTTP, and what a server decides: its loops, its deadlines and its buffers. The one policy here is
// [Acceptor]'s, and [RingAcceptor]'s, for a process that has no descriptors left.
package netpoll
