package webhook

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// notPublic are the addresses that public_only refuses, and what they are for. An IPv4 address in IPv6's clothes (RFC 4291,
// 2.5.5.2) is judged as what it is. RFC 6890 and the registries of special-purpose addresses that it set up.
func notPublic() []network {
	return []network{
		{"0.0.0.0/8", "this host (RFC 791)"},
		{"10.0.0.0/8", "private (RFC 1918)"},
		{"100.64.0.0/10", "shared by a carrier's customers (RFC 6598)"},
		{"127.0.0.0/8", "loopback"},
		{"169.254.0.0/16", "link-local, where clouds keep their metadata (RFC 3927)"},
		{"172.16.0.0/12", "private (RFC 1918)"},
		{"192.0.0.0/24", "for protocols (RFC 6890)"},
		{"192.0.2.0/24", "for documentation (RFC 5737)"},
		{"192.88.99.0/24", "a relay to IPv6 (RFC 7526)"},
		{"192.168.0.0/16", "private (RFC 1918)"},
		{"198.18.0.0/15", "for benchmarks (RFC 2544)"},
		{"198.51.100.0/24", "for documentation (RFC 5737)"},
		{"203.0.113.0/24", "for documentation (RFC 5737)"},
		{"224.0.0.0/4", "multicast (RFC 5771)"},
		{"240.0.0.0/4", "reserved (RFC 1112)"},
		{"::/96", "unspecified, loopback, or IPv4 in an old form (RFC 4291)"},
		{"64:ff9b::/96", "IPv4 behind a translator (RFC 6052)"},
		{"64:ff9b:1::/48", "IPv4 behind a translator (RFC 8215)"},
		{"100::/64", "discarded (RFC 6666)"},
		{"2001::/23", "for protocols, such as tunnels (RFC 2928)"},
		{"2001:db8::/32", "for documentation (RFC 3849)"},
		{"2002::/16", "IPv4 in a tunnel (RFC 3056)"},
		{"3fff::/20", "for documentation (RFC 9637)"},
		{"5f00::/16", "for segment routing (RFC 9602)"},
		{"fc00::/7", "private (RFC 4193)"},
		{"fe80::/10", "link-local (RFC 4291)"},
		{"fec0::/10", "private (RFC 3879)"},
		{"ff00::/8", "multicast (RFC 4291)"},
	}
}

type network struct{ prefix, use string }

// egress holds connections to the public internet. It is asked with the address that is about to be dialled, behind every
// resolver, so that no name can lead it astray.
type egress []egressRule

type egressRule struct {
	prefix netip.Prefix
	use    string
}

func newEgress() egress {
	var e egress
	for _, n := range notPublic() {
		e = append(e, egressRule{netip.MustParsePrefix(n.prefix), n.use})
	}
	return e
}

// control is the Control of a net.Dialer.
func (e egress) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &notAllowed{fmt.Sprintf("public_only cannot tell what address %q is", address)}
	}
	return e.judge(to.Addr())
}

func (e egress) judge(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("") // a prefix contains no address with a zone
	for _, rule := range e {
		if rule.prefix.Contains(addr) {
			return &notAllowed{fmt.Sprintf("public_only refuses %s, which is %s", addr, rule.use)}
		}
	}
	return nil
}

// judgeHost finds a host of a URL that can never be public: an address that is not, or this host by its own name (RFC 6761,
// 6.3). What another name leads to is seen when it is dialled.
func (e egress) judgeHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return e.judge(addr)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return &notAllowed{"public_only refuses " + name + ", which is this host"}
	}
	return nil
}

// notAllowed says which rule a connection broke.
type notAllowed struct{ words string }

func (n *notAllowed) Error() string { return n.words }
