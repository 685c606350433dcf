//go:build sdks

package plugins

// Nothing is compiled with them. Without these imports, go mod tidy would remove both SDKs.
import (
	_ "github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	_ "github.com/muhlba91/pulumi-proxmoxve/sdk/v7/go/proxmoxve"
)
