package netpoll

// Interest says which events of a descriptor a [Poller] reports, and how: flags to combine with |. The values are those
// of epoll_ctl(2). Errors and hang-ups are always reported.
type Interest uint32

const (
	Readable      Interest = 0x1        // EPOLLIN: something to read, or a connection to accept
	Urgent        Interest = 0x2        // EPOLLPRI: an urgent byte has come
	Writable      Interest = 0x4        // EPOLLOUT: room to write
	PeerClosed    Interest = 0x2000     // EPOLLRDHUP: the peer has shut down its sending half, or all
	OneShot       Interest = 0x40000000 // EPOLLONESHOT: one report, then silence until Modify
	EdgeTriggered Interest = 0x80000000 // EPOLLET: a report per change, not as long as it lasts
)
