package syntax

import (
	"fmt"
	"net/netip"
	"strings"
)

// special are the ranges of addresses that no machine of a private network can have. Ranges that are merely meant for
// something else, such as those of documentation (RFC 5737, RFC 3849), benchmarks (RFC 2544) and carriers' NAT (RFC 6598),
// work like any other and are no fault.
var special = []struct {
	network netip.Prefix
	is      string
}{
	{netip.MustParsePrefix("255.255.255.255/32"), "is the broadcast address"},                       // RFC 919
	{netip.MustParsePrefix("0.0.0.0/8"), "is of 0.0.0.0/8, which stands for no host"},               // RFC 1122, 3.2.1.3
	{netip.MustParsePrefix("127.0.0.0/8"), "is a loopback address, each machine's own"},             // RFC 1122, 3.2.1.3
	{netip.MustParsePrefix("169.254.0.0/16"), "is link-local, which machines give themselves"},      // RFC 3927
	{netip.MustParsePrefix("224.0.0.0/4"), "is a multicast address, of a group and not a host"},     // RFC 5771
	{netip.MustParsePrefix("240.0.0.0/4"), "is of 240.0.0.0/4, which is reserved"},                  // RFC 1112, 4
	{netip.MustParsePrefix("::/128"), "is the unspecified address"},                                 // RFC 4291, 2.5.2
	{netip.MustParsePrefix("::1/128"), "is the loopback address, each machine's own"},               // RFC 4291, 2.5.3
	{netip.MustParsePrefix("::/96"), "is an IPv4 address in a form of IPv6 that is withdrawn"},      // RFC 4291, 2.5.5.1
	{netip.MustParsePrefix("100::/64"), "is of 100::/64, whose packets are dropped"},                // RFC 6666
	{netip.MustParsePrefix("fe80::/10"), "is link-local, which machines give themselves"},           // RFC 4291, 2.5.6
	{netip.MustParsePrefix("fec0::/10"), "is site-local, which is withdrawn in favour of fd00::/8"}, // RFC 3879
	{netip.MustParsePrefix("ff00::/8"), "is a multicast address, of a group and not a host"},        // RFC 4291, 2.7
}

// of returns one of two texts, by the family of an address.
func of(address netip.Addr, four, six string) string {
	if address.Is4() {
		return four
	}
	return six
}

// unicastFault checks that a host of a private network can have the address. For a router's IPv6 address that may be link-local,
// see the form "ipv6-router".
func unicastFault(address netip.Addr) *Fault {
	if address.Zone() != "" {
		return because("has a zone, which is one machine's own name of a network device")
	}
	for _, one := range special {
		if one.network.Contains(address) {
			return because(one.is, of(address, hostRemedy4, hostRemedy6))
		}
	}
	return nil
}

// networkFault checks that a prefix is a network, without host bits, and that hosts can have its addresses.
func networkFault(network netip.Prefix) *Fault {
	for _, one := range special {
		remedy := of(network.Addr(), networkRemedy4, networkRemedy6)
		switch {
		case one.network.IsSingleIP() || !one.network.Overlaps(network): // single addresses are in one of the other ranges as well
		case network.Bits() < one.network.Bits():
			return because(fmt.Sprintf("reaches into %s, which is no range for hosts", one.network), remedy)
		default:
			return because(fmt.Sprintf("is within %s, which is no range for hosts", one.network), remedy)
		}
	}
	if network != network.Masked() {
		return because("has host bits set", "did you mean "+network.Masked().String()+"?")
	}
	return nil
}

// ipv4Fault checks that an address, or the address of a network, is IPv4.
func ipv4Fault(address netip.Addr) *Fault {
	if address.Is4() {
		return nil
	}
	if address.Is4In6() {
		return because("is IPv4 written as IPv6")
	}
	return because("is not IPv4")
}

// ipv6Fault checks that an address, or the address of a network, is IPv6.
func ipv6Fault(address netip.Addr) *Fault {
	if address.Is6() && !address.Is4In6() {
		return nil
	}
	return because("is not IPv6")
}

const (
	octet          = `(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
	address4       = `(` + octet + `[.]){3}` + octet
	address6       = `[0-9A-Fa-f]*:[0-9A-Fa-f:.]*`
	length4        = `/(3[0-2]|[12]?[0-9])`
	length6        = `/(12[0-8]|1[01][0-9]|[1-9]?[0-9])`
	routerExample  = "fe80::1"
	example4       = "10.25.11.10"
	example6       = "fd25:11::10"
	exampleNet4    = "10.25.11.0/24"
	exampleNet6    = "fd25:11::/64"
	hostRemedy4    = "write the address of a host, such as " + example4
	hostRemedy6    = "write the address of a host, such as " + example6
	networkRemedy4 = "pick a private range, such as " + exampleNet4
	networkRemedy6 = "pick a private range, such as " + exampleNet6
	lengthRemedy4  = "write address and length, such as " + exampleNet4
	lengthRemedy6  = "write address and length, such as " + exampleNet6
)

var addressForms = []Form{
	{
		Name: "ipv4-address", What: "an IPv4 address", Words: "address", Example: example4, Pattern: `^` + address4 + `$`,
		check: addressCheck(ipv4Fault, unicastFault), fix: fixAddress,
	},
	{
		Name: "ipv6-address", What: "an IPv6 address", Words: "IPv6 address", Example: example6, Pattern: `^` + address6 + `$`,
		check: addressCheck(ipv6Fault, unicastFault), fix: fixAddress,
	},
	{
		Name: "ipv6-router", What: "the IPv6 address of a router", Words: "IPv6 address, possibly link-local", Example: routerExample,
		Pattern: `^` + address6 + `$`, fix: fixAddress,
		check: addressCheck(ipv6Fault, func(address netip.Addr) *Fault {
			if address.Zone() == "" && address.IsLinkLocalUnicast() {
				return nil
			}
			return unicastFault(address)
		}),
	},
	{
		Name: "ipv4-network", What: "an IPv4 network", Words: "network", Example: exampleNet4, Pattern: `^` + address4 + length4 + `$`,
		check: networkCheck(ipv4Fault), fix: fixNetwork, remedy: lengthRemedy4,
	},
	{
		Name: "ipv6-network", What: "an IPv6 network", Words: "IPv6 network", Example: exampleNet6, Pattern: `^` + address6 + length6 + `$`,
		check: networkCheck(ipv6Fault), fix: fixNetwork, remedy: lengthRemedy6,
	},
}

func addressCheck(checks ...func(netip.Addr) *Fault) func(string) *Fault {
	return func(value string) *Fault {
		address, err := netip.ParseAddr(value)
		if err != nil {
			return wrong()
		}
		for _, check := range checks {
			if fault := check(address); fault != nil {
				return because(fault.Problem)
			}
		}
		return nil
	}
}

func networkCheck(family func(netip.Addr) *Fault) func(string) *Fault {
	return func(value string) *Fault {
		network, err := netip.ParsePrefix(value)
		if err != nil {
			return wrong()
		}
		if fault := family(network.Addr()); fault != nil {
			return fault
		}
		return networkFault(network)
	}
}

// fixAddress takes the address out of ADDRESS/LENGTH, [ADDRESS] and ADDRESS%ZONE, and removes leading zeros.
func fixAddress(value string) []string {
	bare, _ := cutAny(strings.Trim(value, "[]"), "/%")
	if address, err := netip.ParseAddr(bare); err == nil {
		return []string{address.Unmap().String()}
	}
	return []string{decimal(bare)}
}

// fixNetwork clears the host bits and removes leading zeros.
func fixNetwork(value string) []string {
	address, length, _ := strings.Cut(strings.ReplaceAll(value, " ", ""), "/")
	if plain := decimal(address); plain != "" {
		address = plain
	}
	network, err := netip.ParsePrefix(address + "/" + length)
	if err != nil {
		return nil
	}
	return []string{network.Masked().String()}
}
