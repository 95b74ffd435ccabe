package main

import (
	"io"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// The system calls of this exercise, counted as shared/netpoll counts its own.

// sendMore is netpoll.Send with MSG_MORE: more follows at once, so the kernel
// keeps what does not fill a segment until it comes. Were nothing to follow, the
// client would wait for a fifth of a second: send(2), tcp(7).
func sendMore(c *netpoll.Counters, fd int, p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		c.Writes++
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			unix.MSG_NOSIGNAL|unix.MSG_MORE, 0, 0)
		switch errno {
		case 0:
			c.WrittenBytes += uint64(n)
			return int(n), nil
		case unix.EINTR:
		case unix.EAGAIN:
			c.WriteAgains++
			return 0, netpoll.ErrWouldBlock
		default:
			return 0, errno
		}
	}
}

// sendFile is sendfile(2): it gives the socket fd up to count bytes of the file
// descriptor, from *offset on, and advances *offset by as many as the kernel
// took. It answers
//   - n > 0: so many. Fewer than count does not say that the socket is full: a
//     signal cuts a call short too
//   - 0 and netpoll.ErrWouldBlock: the socket is full
//   - 0 and nil: the file ends here, although count is not 0
//   - 0 and the errno: EPIPE or ECONNRESET when the client is gone
//
// It reads from a disk if it has to, so it is the one write that tells the
// scheduler. (SIGPIPE, which MSG_NOSIGNAL would spare us, is ignored by Go.)
func sendFile(c *netpoll.Counters, fd, descriptor int, offset *int64, count int) (n int, err error) {
	for {
		c.Writes++
		n, err := unix.Sendfile(fd, descriptor, offset, count)
		switch err {
		case nil:
			c.WrittenBytes += uint64(n)
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			c.WriteAgains++
			return 0, netpoll.ErrWouldBlock
		default:
			return 0, err
		}
	}
}

// readFile is pread(2) until p is full: a copy of a file's bytes, and counted as
// one. It answers io.ErrUnexpectedEOF when the file ends before that.
func readFile(c *netpoll.Counters, descriptor int, p []byte, offset int64) error {
	for len(p) > 0 {
		n, err := unix.Pread(descriptor, p, offset)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		default:
			c.BodyBytesCopied += uint64(n)
			p, offset = p[n:], offset+int64(n)
		}
	}
	return nil
}

// A folder is the descriptor of a directory, -1 if it could not be opened. It is
// open for as long as the process lives.
type folder int

func openFolder(name string) folder {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return folder(fd)
}

// open opens a plain file that lies inside the folder, by its name without links:
// openat2(2), RESOLVE_BENEATH. The descriptor is the caller's to close.
func (d folder) open(name string) (descriptor int, size int64, changed time.Time, ok bool) {
	// O_NONBLOCK keeps off a named pipe, which would hold up the loop until
	// someone writes.
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	descriptor, err := unix.Openat2(int(d), name, &how)
	for err == unix.EINTR {
		descriptor, err = unix.Openat2(int(d), name, &how)
	}
	if err != nil {
		return -1, 0, time.Time{}, false
	}
	var status unix.Stat_t
	if err := unix.Fstat(descriptor, &status); err != nil || status.Mode&unix.S_IFMT != unix.S_IFREG || status.Size > maxFile {
		unix.Close(descriptor)
		return -1, 0, time.Time{}, false
	}
	seconds, nanoseconds := status.Mtim.Unix()
	return descriptor, status.Size, time.Unix(seconds, nanoseconds), true
}

// closeFile closes a file that nothing is sent of.
func closeFile(descriptor int) { unix.Close(descriptor) }
