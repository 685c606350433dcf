package upgrade

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"golang.org/x/mod/semver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// lifecycleSince is the first minor version of Talos with LifecycleService. It still has the former call, which is deprecated.
const lifecycleSince = "v1.13"

// installerStore is where Talos keeps the images of its own services, and where `talosctl upgrade` puts the installer.
var installerStore = &common.ContainerdInstance{Driver: common.ContainerDriver_CRI, Namespace: common.ContainerdNamespace_NS_SYSTEM}

// hasLifecycle tells whether the version of Talos that a machine runs has LifecycleService.
func hasLifecycle(ctx context.Context, talos *client.Client) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	answer, err := talos.Version(ctx)
	if err != nil {
		return false, err
	}
	for _, message := range answer.GetMessages() {
		return semver.Compare(semver.MajorMinor(message.GetVersion().GetTag()), lifecycleSince) >= 0, nil
	}
	return false, errors.New("the answer has no version")
}

// Upgrade implements machines. The former call returns after Talos has pulled the installer and looked at etcd; Talos drains, installs and
// reboots then. LifecycleService only installs, whatever the state of etcd: the turn has seen that etcd can spare the node.
func (c clients) Upgrade(ctx context.Context, node turn.Node, image string) error {
	talos := c.Talos(node)
	lifecycle, err := hasLifecycle(ctx, talos)
	if err != nil {
		return talosapi.Message(err)
	}
	if !lifecycle {
		ctx, cancel := context.WithTimeout(ctx, pullTimeout)
		defer cancel()
		_, err := talos.UpgradeWithOptions(ctx, client.WithUpgradeImage(image)) //nolint:staticcheck // Talos before 1.13 has no other call
		return talosapi.Message(err)
	}
	pulled, err := pullInstaller(ctx, talos, image)
	if err != nil {
		return talosapi.Message(err)
	}
	if err := runInstaller(ctx, talos, pulled); err != nil {
		return talosapi.Message(err)
	}
	return c.Reboot(ctx, node)
}

// pullInstaller makes a machine pull an installer, and returns the name that the machine gives the image.
func pullInstaller(ctx context.Context, talos *client.Client, image string) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	answers, err := talos.ImageClient.Pull(ctx, &machine.ImageServicePullRequest{Containerd: installerStore, ImageRef: image})
	err = each(answers, err, func(answer *machine.ImageServicePullResponse) {
		if answer.GetName() != "" {
			name = answer.GetName()
		}
	})
	if err == nil && name == "" {
		err = errors.New("the answer does not name the pulled image")
	}
	return name, err
}

// runInstaller makes a machine run an installer that it has pulled. The last line that a failed installer writes is its error. Talos goes
// on with the installation when the call is interrupted.
func runInstaller(ctx context.Context, talos *client.Client, image string) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	answers, err := talos.LifecycleClient.Upgrade(ctx, &machine.LifecycleServiceUpgradeRequest{
		Containerd: installerStore, Source: &machine.InstallArtifactsSource{ImageName: image},
	})
	var output tail
	code, ended := int32(0), false
	err = each(answers, err, func(answer *machine.LifecycleServiceUpgradeResponse) {
		switch progress := answer.GetProgress().GetResponse().(type) {
		case *machine.LifecycleServiceInstallProgress_Message:
			output.add(progress.Message)
		case *machine.LifecycleServiceInstallProgress_ExitCode:
			code, ended = progress.ExitCode, true
		}
	})
	switch {
	case err != nil:
		return err
	case !ended:
		return fmt.Errorf("the answer ends without an exit code of the installer; its last line: %s", output.line())
	case code != 0:
		return fmt.Errorf("the installer ended with exit code %d: %s", code, output.line())
	}
	return nil
}

// each calls f with every message of a stream, until the stream ends.
func each[T any](from grpc.ServerStreamingClient[T], err error, f func(*T)) error {
	for err == nil {
		var message *T
		if message, err = from.Recv(); err == nil {
			f(message)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// tail is the end of an output. Talos 1.13 sends the output in pieces of at most 512 bytes, 1.14 line by line.
type tail string

func (t *tail) add(piece string) {
	const most = 4096
	all := string(*t) + piece
	*t = tail(all[max(0, len(all)-most):])
}

// line returns the last line that is not empty.
func (t *tail) line() string {
	text := strings.TrimSpace(string(*t))
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}

// defaultEntry is the variable of the firmware in which an installation writes the file that the boot loader, systemd-boot, boots next.
const defaultEntry = "/sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"

// Next implements machines. Before 1.13, Talos itself reboots after an installation. A machine without UEFI does not tell.
func (c clients) Next(ctx context.Context, node turn.Node) (version string, err error) {
	talos := c.Talos(node)
	if lifecycle, err := hasLifecycle(ctx, talos); err != nil || !lifecycle {
		return "", talosapi.Message(err)
	}
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	booted, err := safe.StateGetByID[*runtime.BootedEntry](ctx, talos.COSI, runtime.BootedEntryID)
	if state.IsNotFoundError(err) {
		return "", nil
	}
	if err != nil {
		return "", talosapi.Message(err)
	}
	next, err := readVariable(ctx, talos, defaultEntry)
	if err != nil {
		return "", talosapi.Message(err)
	}
	if now := booted.TypedSpec().BootedEntry; now == "" || strings.EqualFold(next, now) { // "" if Talos cannot tell
		return "", nil
	}
	return versionOf(next), nil
}

// versionOf returns the version in the name of a boot entry, such as Talos-v1.13.9.efi, or Talos-v1.13.9~1.efi for the next installation of
// that version; "" of another name.
func versionOf(entry string) string {
	name, ours := strings.CutPrefix(strings.TrimSuffix(entry, ".efi"), "Talos-")
	if !ours {
		return ""
	}
	version, _, _ := strings.Cut(name, "~")
	return version
}

// readVariable returns the text of a variable of the firmware; "" without one. Its file begins with four bytes of attributes.
func readVariable(ctx context.Context, talos *client.Client, path string) (string, error) {
	file, err := talos.Read(ctx, path)
	if err != nil {
		return "", err
	}
	defer file.Close() // all is read by then
	data, err := io.ReadAll(io.LimitReader(file, 4096))
	if err == nil {
		err = ctx.Err() // Talos's client takes a call without an answer in time for the end of the file
	}
	switch {
	case status.Code(err) == codes.NotFound:
		return "", nil
	case err != nil:
		return "", err
	case len(data) < 4:
		return "", nil
	}
	var text []uint16
	for rest := data[4:]; len(rest) >= 2; rest = rest[2:] {
		text = append(text, binary.LittleEndian.Uint16(rest))
	}
	return strings.TrimRight(string(utf16.Decode(text)), "\x00"), nil
}
