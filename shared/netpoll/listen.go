package netpoll

// ListenOptions says how [Listen] opens a listening socket.
type ListenOptions struct {
	// Backlog is how many connections may wait to be accepted, see listen(2); 0 or less asks for as many as the kernel's
	// net.core.somaxconn allows.
	Backlog int

	// Claim makes sure that no other process listens on the address, not even one that set SO_REUSEPORT: the socket is bound
	// and listens without that option. Without Share it changes nothing, for such a socket never shares.
	Claim bool

	// Share sets SO_REUSEPORT (socket(7)), so that several sockets of one user may listen on the address and the kernel
	// spreads connections over them. With Claim it is set only once the address is ours: the first listener of a
	// process takes Claim and Share, the others Share alone.
	Share bool
}
