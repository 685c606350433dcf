package config

import (
	"fmt"
	"regexp"
	"strings"
)

// MAC is a 48-bit MAC address in Proxmox's spelling, upper case with colons: BC:24:11:00:01:0B.
// Lower case is accepted and turned into that spelling, for Proxmox reads it back so.
type MAC string

var macForm = regexp.MustCompile(`^([0-9A-F]{2}:){5}[0-9A-F]{2}$`)

// UnmarshalText reads the form described at MAC. Which addresses are usable is for validation to say.
func (m *MAC) UnmarshalText(text []byte) error {
	upper := strings.ToUpper(string(text))
	if !macForm.MatchString(upper) {
		return fmt.Errorf("not a MAC address; write six pairs of hexadecimal digits with colons, such as BC:24:11:00:01:0B")
	}
	*m = MAC(upper)
	return nil
}

// isGroup reports whether the address is for many receivers, not one: the lowest bit of its first byte.
func (m MAC) isGroup() bool { return len(m) > 1 && strings.ContainsRune("13579BDF", rune(m[1])) }
