package syntax

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxHost = 253 // RFC 1035: 255 bytes, two of which are lengths
	maxPort = 65535

	dnsLabel    = `[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?`
	dnsPattern  = dnsLabel + `([.]` + dnsLabel + `)*`
	ip6Pattern  = `[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*`
	portPattern = `(:[1-9][0-9]{0,4})?`
	hostPattern = `^(` + ip6Pattern + `|` + dnsPattern + `)$`
	authPattern = `([[]` + ip6Pattern + `\]|` + dnsPattern + `)` + portPattern
)

var (
	dnsForm     = regexp.MustCompile(`^` + dnsPattern + `$`)
	portForm    = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
	numericForm = regexp.MustCompile(`(?i)^([0-9]+|0x[0-9a-f]*)$`)
)

var hostForms = []Form{
	{
		Name: "ntp-server", What: "the host name or address of a time server", Words: "host name or address", Example: "time.cloudflare.com",
		Pattern: hostPattern, fix: fixHost,
		check: func(value string) *Fault {
			if fault := hostFault(value); fault != nil {
				return fault
			}
			address, err := netip.ParseAddr(value)
			if strings.EqualFold(value, "localhost") || err == nil && address.IsLoopback() {
				return because("is each machine itself", "write another host")
			}
			if err == nil {
				return unicastFault(address)
			}
			return nil
		},
	},
	{
		Name: "registry", What: "a registry", Words: "a registry's host, possibly with a port, or `*`", Example: "docker.io",
		Pattern: `^([*]|` + authPattern + `)$`, check: registryFault, fix: fixAuthority,
		remedy: "write a host, such as docker.io, or * for every registry",
	},
	{
		Name: "bucket-endpoint", What: "a host, possibly with a port", Words: "host, possibly with a port", Example: "s3.example.com:9000",
		Pattern: `^` + authPattern + `$`, Secret: true, remedy: "write a host without a scheme, such as s3.example.com:9000",
		check: endpointFault, fix: fixEndpoint,
	},
	{
		Name: "registry-endpoint", What: "a registry's host, possibly with a port", Words: "a registry's host, possibly with a port",
		Example: "registry.example.com:5000", Pattern: `^` + authPattern + `$`, Secret: true,
		remedy: "write a host without a scheme, such as registry.example.com:5000", check: endpointFault, fix: fixEndpoint,
	},
	{
		Name: "bucket-name", What: "the name of a bucket", Words: "3 to 63 of a-z, 0-9, . and -", Example: "platform",
		Pattern: `^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`, check: bucketFault,
		fix:    func(value string) []string { return []string{strings.ToLower(value)} },
		remedy: "write 3 to 63 of a-z, 0-9, . and -, with a letter or digit at both ends",
	},
}

// endpointFault returns what is wrong with a host that must have neither a scheme nor a path.
func endpointFault(value string) *Fault {
	switch {
	case strings.Contains(value, "@"):
		return because(credentials, revoke)
	case strings.Contains(value, "://"):
		return because("has a scheme")
	case strings.Contains(value, "/"):
		return because("has a path")
	}
	return authorityFault(value)
}

func fixEndpoint(value string) []string {
	host, _ := cutAny(value[len(schemeForm.FindString(value)):], "/?#")
	return []string{host}
}

// bucketFault checks the name of a bucket by the rules of S3 that minio-go checks, with which Flux fetches it.
func bucketFault(value string) *Fault {
	_, err := netip.ParseAddr(value)
	switch {
	case err == nil:
		return because("is an IP address, which S3 takes for no name", "write the bucket's name")
	case strings.Contains(value, "..") || strings.Contains(value, ".-") || strings.Contains(value, "-."):
		return because("has a dot beside a dot or a dash, which S3 takes for no name", "write the bucket's name")
	}
	return nil
}

// hostFault checks a DNS name or an IP address without brackets.
func hostFault(value string) *Fault {
	if address, err := netip.ParseAddr(value); err == nil {
		switch {
		case address.Zone() != "":
			return because("has a zone, which is one machine's own name of a network device")
		case address.Is4In6():
			return because("is an IPv4 address written as IPv6")
		case address.IsLoopback():
			return nil // it depends on who connects to it
		}
		return unicastFault(address)
	}
	labels := strings.Split(value, ".")
	last := labels[len(labels)-1]
	switch {
	case len(value) > maxHost:
		return because("is longer than 253 characters, which no host name is")
	case len(labels) > 1 && last == "":
		return because("ends in a dot")
	case strings.Contains(value, "..") || labels[0] == "":
		return because("has an empty label in it: two dots, or one at its beginning")
	case numericForm.MatchString(last):
		return because("ends in a number as an IPv4 address does, and is none")
	case !dnsForm.MatchString(value):
		return wrong()
	}
	return nil
}

// splitAuthority splits HOST[:PORT], with brackets around an IPv6 address, and reports whether the parts can be told apart
// and the port is one.
func splitAuthority(text string) (host string, ok bool) {
	if inner, isSix := strings.CutPrefix(text, "["); isSix {
		host, rest, closed := strings.Cut(inner, "]")
		address, err := netip.ParseAddr(host)
		port, hasPort := strings.CutPrefix(rest, ":")
		return host, closed && err == nil && address.Is6() && (rest == "" || hasPort && isPort(port))
	}
	host, port, hasPort := strings.Cut(text, ":")
	return host, host != "" && (!hasPort || isPort(port))
}

func isPort(text string) bool {
	if !portForm.MatchString(text) {
		return false
	}
	port, err := strconv.Atoi(text)
	return err == nil && port <= maxPort
}

// authorityFault checks HOST[:PORT].
func authorityFault(text string) *Fault {
	host, ok := splitAuthority(text)
	switch {
	case text == "" || strings.HasPrefix(text, ":"):
		return because("has no host")
	case !ok && strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "["):
		return because("has an IPv6 address without brackets")
	case !ok && !strings.HasPrefix(text, "["):
		return because("has a port that is no number from 1 to 65535")
	case !ok:
		return because("has a host that is neither a name nor an address")
	}
	switch fault := hostFault(host); {
	case fault == nil:
		return nil
	case fault.Problem == "":
		return because("has a host that is neither a name nor an address")
	default:
		return because("has a host that " + fault.Problem)
	}
}

// registryFault checks a registry as the reference of an image has it. Without a dot and port, the first part of a reference
// is not a registry but a folder of docker.io.
func registryFault(value string) *Fault {
	if value == "*" {
		return nil
	}
	if fault := authorityFault(value); fault != nil {
		return wrong()
	}
	switch lower := strings.ToLower(value); {
	case lower == "index.docker.io":
		return because("is never the registry of an image: images of it are docker.io's")
	case lower != value:
		return because("has capitals, which no image's reference has: the mirror would never be asked")
	case !isRegistry(lower):
		return because("is no registry in the reference of an image, for it has neither a dot nor a port",
			"write the host with its domain or port, such as registry.home.arpa")
	}
	return nil
}

func isRegistry(host string) bool { return strings.ContainsAny(host, ".:") || host == "localhost" }

// fixHost takes the host out of a URL or of HOST:PORT.
func fixHost(value string) []string {
	authority := bareAuthority(value)
	host, ok := splitAuthority(authority)
	if !ok {
		host = authority
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return []string{address.Unmap().WithZone("").String()}
	}
	host = strings.TrimSuffix(host, ".")
	return []string{host, decimal(host), strings.ReplaceAll(host, "_", "-")}
}

func fixAuthority(value string) []string {
	if strings.EqualFold(value, "index.docker.io") {
		return []string{"docker.io"}
	}
	authority := bareAuthority(value)
	if address, err := netip.ParseAddr(authority); err == nil && address.Is6() {
		return []string{"[" + address.WithZone("").String() + "]"}
	}
	return []string{authority, strings.TrimSuffix(authority, "."), strings.ToLower(authority)}
}

// bareAuthority takes HOST[:PORT] out of a URL, or returns "" if HOST may be a part of a password.
func bareAuthority(value string) string {
	if _, rest, found := strings.Cut(value, "://"); found {
		value = rest
	}
	authority, rest := cutAny(value, `/?#\`)
	if strings.Contains(authority+rest, "@") {
		return ""
	}
	return authority
}

// decimal is an IPv4 address without leading zeros, which are octal to some programs.
func decimal(text string) string {
	parts := strings.Split(text, ".")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); trimmed != "" {
			parts[i] = trimmed
		} else if part != "" {
			parts[i] = "0"
		}
	}
	if address := strings.Join(parts, "."); isAddress4(address) {
		return address
	}
	return ""
}

func isAddress4(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is4()
}
