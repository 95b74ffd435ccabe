package grade

import "golang.org/x/sys/unix"

// segmentsIn is how many segments with data have come in over a connection: tcp(7), TCP_INFO.
func (c *connection) segmentsIn() (n int, err error) {
	raw, err := c.TCP.SyscallConn()
	if err != nil {
		return 0, err
	}
	var info *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); e != nil {
		return 0, e
	}
	if err != nil {
		return 0, err
	}
	return int(info.Data_segs_in), nil
}
