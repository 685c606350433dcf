package cluster

import "github.com/slipway-platform/slipway/internal/syntax"

// MAC is a 48-bit unicast MAC address in Proxmox's spelling, upper case with colons: BC:24:11:00:01:0B. Lower case is
// accepted and turned into that spelling, because Proxmox reads it back so.
type MAC string

// UnmarshalText reads the form described at MAC. Its error is a problem and a remedy, parted by a semicolon.
func (m *MAC) UnmarshalText(text []byte) error {
	if err := wellFormed("mac", text); err != nil {
		return err
	}
	*m = MAC(syntax.NormalMAC(string(text)))
	return nil
}
