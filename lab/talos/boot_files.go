package talos

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// customizationFile is the one file of a configuration by which it adds to containerd's own.
const customizationFile = "/etc/" + constants.CRICustomizationConfigPart

// criRestartSince is the first version of Talos that restarts containerd of the pods when its configuration changes.
const criRestartSince = "v1.14"

// writeFiles writes the files of a configuration, which Talos does only at boot. Those in /var stay on the disk. Which files an image has
// is not modelled, so any other one may be overwritten.
func (b *boot) writeFiles(cfg config.Provider) error {
	files, err := cfg.Machine().Files()
	if err != nil {
		return fmt.Errorf("error generating extra files: %w", err)
	}
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if b.inst.written == nil {
		b.inst.written = map[string]string{}
	}
	written := map[string]string{}
	for _, file := range files {
		at, content := path.Clean(file.Path()), file.Content()
		kept := strings.HasPrefix(at, "/var/")
		switch {
		case at == customizationFile:
		case file.Op() == "create" && !kept && path.Dir(at) != constants.ManifestsDirectory:
			return fmt.Errorf("create operation not allowed outside of /var: %q", file.Path())
		case kept && file.Op() == "append":
			content = b.inst.written[at] + "\n" + content
		}
		if kept {
			b.inst.written[at] = content
		}
		written[at] = content
	}
	maps.Copy(written, b.inst.written)
	b.files = written
	return nil
}

// followCRI makes containerd of the pods take over a changed configuration: since Talos 1.14, it restarts a moment later. Pods, the kubelet
// and etcd go on.
func (b *boot) followCRI(former, cfg config.Provider) {
	if !versions.Since(b.version, criRestartSince) || reflect.DeepEqual(criInputs(former), criInputs(cfg)) {
		return
	}
	content, exists := customization(cfg)
	b.site.mu.Lock()
	files := maps.Clone(b.files)
	delete(files, customizationFile)
	if exists {
		files[customizationFile] = content
	}
	b.files = files
	b.site.mu.Unlock()
	b.wg.Go(func() {
		if sleep(b.ctx, b.site.cfg.Latency.Service) == nil {
			b.services.Restart("cri")
		}
	})
}

// criInputs are the parts of the configuration that containerd of the pods depends on.
func criInputs(cfg config.Provider) []any {
	content, exists := customization(cfg)
	return []any{content, exists, cfg.Machine().BaseRuntimeSpecOverrides(), cfg.RegistryAuthConfigs()}
}

// customization is the content of customizationFile in a configuration.
func customization(cfg config.Provider) (content string, exists bool) {
	files, err := cfg.Machine().Files()
	if err != nil {
		return "", false
	}
	for _, file := range files {
		if path.Clean(file.Path()) == customizationFile {
			return file.Content(), true
		}
	}
	return "", false
}
