package talosapi

import (
	"errors"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
)

// ParseConfig parses a talosconfig. Its error does not quote the cause, because that may quote the text.
func ParseConfig(talosconfig string) (*clientconfig.Config, error) {
	config, err := clientconfig.FromString(talosconfig)
	if err != nil || config.Contexts[config.Context] == nil {
		return nil, errors.New("talosconfig: is not a Talos client configuration with a current context")
	}
	return config, nil
}
