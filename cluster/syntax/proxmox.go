package syntax

import (
	"net/netip"
	"regexp"
	"strings"
)

var (
	macForm    = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`) // as Proxmox VE writes it
	twelveForm = regexp.MustCompile(`^[0-9A-F]{12}$`)
	uuidForm   = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	realmForm  = regexp.MustCompile(`^[A-Za-z][0-9A-Za-z._-]+$`) // Proxmox VE: realms, and names of tokens
	userForm   = regexp.MustCompile(`^[!-.0-9;-~]+$`)            // Proxmox VE: user names, without white space, : and /
)

const (
	tokenRemedy = "write USER@REALM!TOKENID=UUID, as Proxmox VE shows it once"
	macRemedy   = "write a unicast one, such as BC:24:11:00:01:0B"
)

// holdsAddress reports whether a value is an IP address, by itself or in a URL, with or without a port.
func holdsAddress(value string) bool {
	host := bareAuthority(value)
	if _, err := netip.ParseAddrPort(host); err == nil {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

var proxmoxForms = []Form{
	{
		// Proxmox VE: pve-node
		Name: "proxmox-node", What: "the name of a Proxmox node", Words: "host name", Example: "pve1",
		Pattern: `^` + dnsLabel + `$`,
		check: refusing(holdsAddress, "is an address, and not the name of a Proxmox node", // whose first label would be a number
			"write the name that Proxmox VE displays, such as pve1"),
		fix: func(value string) []string {
			host, _, _ := strings.Cut(bareAuthority(value), ":")
			first, _, _ := strings.Cut(host, ".")
			return []string{first, strings.ReplaceAll(first, "_", "-")}
		},
		remedy: "write at most 63 letters, digits and -, with a letter or digit at both ends",
	},
	{
		// Proxmox VE: pve-storage-id
		Name: "proxmox-storage", What: "the name of a Proxmox storage", Words: "storage name", Example: "local-lvm",
		Pattern: `^[A-Za-z][0-9A-Za-z._-]*[0-9A-Za-z]$`,
		fix: func(value string) []string {
			storage, _, _ := strings.Cut(value, ":") // as in local:iso/talos.iso
			return []string{storage, strings.ReplaceAll(storage, " ", "-")}
		},
	},
	{
		// Proxmox VE: pve-tag, which it keeps in lower case
		Name: "proxmox-tag", What: "a tag as Proxmox keeps it", Words: "lower-case tag", Example: "team-a",
		Pattern: `^[a-z0-9_][a-z0-9_+.-]*$`,
		fix: func(value string) []string {
			lower := strings.ToLower(value)
			return []string{lower, strings.Trim(strings.ReplaceAll(lower, " ", "-"), "-")}
		},
		remedy: "write it of a-z, 0-9, _, +, . and -, such as team-a",
	},
	{
		// Proxmox VE: pve-bridge-id; Linux: IFNAMSIZ
		Name: "bridge", What: "the name of a Linux bridge or SDN VNet", Words: "interface name, at most 15 characters", Example: "vmbr0",
		Pattern: `^[0-9A-Za-z_][0-9A-Za-z_.-]{0,14}$`,
		check:   refusing(func(value string) bool { return len(value) > 15 }, "is longer than 15 characters, which no network device's name is"),
	},
	{
		Name: "mac", What: "a MAC address", Words: "MAC address with colons, unicast", Example: "BC:24:11:00:01:0B",
		Pattern: `^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$`,
		check: func(value string) *Fault {
			switch {
			case !macForm.MatchString(value):
				return wrong()
			case strings.EqualFold(value, "ff:ff:ff:ff:ff:ff"):
				return because("is the broadcast address", macRemedy)
			case strings.ContainsRune("13579BDFbdf", rune(value[1])): // the lowest bit of the first byte
				return because("is a multicast address", macRemedy)
			case value == "00:00:00:00:00:00":
				return because("is no machine's address", macRemedy)
			}
			return nil
		},
		fix: func(value string) []string {
			digits := strings.ToUpper(strings.NewReplacer(":", "", "-", "", ".", "", " ", "").Replace(value))
			if !twelveForm.MatchString(digits) {
				return nil
			}
			return []string{strings.Join([]string{digits[0:2], digits[2:4], digits[4:6], digits[6:8], digits[8:10], digits[10:]}, ":")}
		},
		remedy: "write six pairs of hexadecimal digits with colons, such as BC:24:11:00:01:0B",
	},
	{
		Name: "api-token", What: "an API token", Words: "`USER@REALM!TOKENID=UUID`", Secret: true,
		Example: "slipway@pve!pulumi=0c5a8d6e-1111-2222-3333-444455556666",
		Pattern: `^[!-.0-9;-~]+@[A-Za-z][0-9A-Za-z._-]+![A-Za-z][0-9A-Za-z._-]+=[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`,
		check:   tokenFault, remedy: tokenRemedy,
	},
}

// NormalMAC is a valid MAC address in the spelling that Proxmox VE reads back: upper case.
func NormalMAC(value string) string { return strings.ToUpper(value) }

// tokenFault checks USER@REALM!TOKENID=UUID, from its end: a user's name may have an @ or ! in it.
func tokenFault(value string) *Fault {
	id, secret := cutLast(value, "=")
	account, token := cutLast(id, "!")
	user, realm := cutLast(account, "@")
	switch {
	case strings.ContainsAny(value[:1], `'"`):
		return because("has quotes around it", "remove them")
	case strings.HasPrefix(value, "PVEAPIToken"):
		return because("begins with what its HTTP header begins with", "remove PVEAPIToken= before the user")
	case id == "":
		return because("has no =, which the token's UUID follows")
	case !uuidForm.MatchString(secret):
		return because("has no UUID after its =")
	case account == "":
		return because("has no !, which the token's name follows")
	case user == "":
		return because("has no realm, such as @pve, after its user")
	case !userForm.MatchString(user) || !realmForm.MatchString(realm) || !realmForm.MatchString(token):
		return because("has a user, realm or name that Proxmox VE gives no token")
	}
	return nil
}

// cutLast cuts a text at the last separator; without one, nothing is before it.
func cutLast(text, separator string) (before, after string) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return "", text
	}
	return text[:i], text[i+len(separator):]
}
