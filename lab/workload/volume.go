package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumeInterval is how often the files of a volume are compared with their Secrets and ConfigMaps. A kubelet takes up to two minutes.
const volumeInterval = 5 * time.Second

// Volume returns a volume of the container's pod.
func (c Container) Volume(name string) (corev1.Volume, error) {
	at := slices.IndexFunc(c.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if at < 0 {
		return corev1.Volume{}, fmt.Errorf("container %s: there is no volume %s", c.Spec.Name, name)
	}
	return c.Pod.Spec.Volumes[at], nil
}

// VolumeFiles returns the files of a volume of Secrets and ConfigMaps. Files of objects that are optional and missing are left out.
func VolumeFiles(ctx context.Context, c Container, v corev1.Volume) (map[string][]byte, error) {
	switch {
	case v.Secret != nil:
		return secretFiles(ctx, c, v.Secret.SecretName, v.Secret.Optional, v.Secret.Items)
	case v.ConfigMap != nil:
		return configMapFiles(ctx, c, v.ConfigMap.Name, v.ConfigMap.Optional, v.ConfigMap.Items)
	case v.Projected == nil:
		return nil, fmt.Errorf("volume %s: the lab provides only files of Secrets and ConfigMaps, and emptyDir", v.Name)
	}
	files := map[string][]byte{}
	for _, source := range v.Projected.Sources {
		var some map[string][]byte
		var err error
		switch {
		case source.Secret != nil:
			some, err = secretFiles(ctx, c, source.Secret.Name, source.Secret.Optional, source.Secret.Items)
		case source.ConfigMap != nil:
			some, err = configMapFiles(ctx, c, source.ConfigMap.Name, source.ConfigMap.Optional, source.ConfigMap.Items)
		default:
			err = fmt.Errorf("volume %s: the lab projects only Secrets and ConfigMaps", v.Name)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(files, some)
	}
	return files, nil
}

func secretFiles(ctx context.Context, c Container, name string, optionally *bool, items []corev1.KeyToPath) (map[string][]byte, error) {
	s, err := c.Cluster.Client.CoreV1().Secrets(c.Pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, optional(err, optionally)
	}
	return projected(s.Data, optionally, items)
}

func configMapFiles(ctx context.Context, c Container, name string, optionally *bool, items []corev1.KeyToPath) (map[string][]byte, error) {
	m, err := c.Cluster.Client.CoreV1().ConfigMaps(c.Pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, optional(err, optionally)
	}
	data := maps.Clone(m.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range m.Data {
		data[key] = []byte(value)
	}
	return projected(data, optionally, items)
}

// projected is the data under the paths of its items; without items every key is a file.
func projected(data map[string][]byte, optionally *bool, items []corev1.KeyToPath) (map[string][]byte, error) {
	if len(items) == 0 {
		return data, nil
	}
	files := map[string][]byte{}
	for _, item := range items {
		value, is := data[item.Key]
		switch {
		case is:
			files[item.Path] = value
		case optionally == nil || !*optionally:
			return nil, fmt.Errorf("references non-existent key: %s", item.Key)
		}
	}
	return files, nil
}

// keepVolume writes the files of a volume into a folder, and again when they change, until ctx ends.
func keepVolume(ctx context.Context, c Container, v corev1.Volume, folder string, interval time.Duration) error {
	last, err := VolumeFiles(ctx, c, v)
	if err != nil {
		return err
	}
	round := 0
	mode := volumeMode(v)
	if err := writeVolume(folder, round, last, mode); err != nil {
		return err
	}
	go Repeat(ctx, c, interval, func() error {
		now, err := VolumeFiles(ctx, c, v)
		if err != nil || maps.EqualFunc(now, last, bytes.Equal) {
			return nil // while the API server does not answer, the files stay
		}
		round++
		if err := writeVolume(folder, round, now, mode); err != nil {
			return fmt.Errorf("volume %s not written: %w", v.Name, err)
		}
		last = now
		return nil
	})
	return nil
}

// volumeMode is the mode of a volume's files. Of the mode that the volume gives them, only the owner's right to execute is modelled.
func volumeMode(v corev1.Volume) os.FileMode {
	var given *int32
	switch {
	case v.Secret != nil:
		given = v.Secret.DefaultMode
	case v.ConfigMap != nil:
		given = v.ConfigMap.DefaultMode
	case v.Projected != nil:
		given = v.Projected.DefaultMode
	}
	if given != nil && *given&0o100 != 0 {
		return 0o700
	}
	return 0o600
}

// writeVolume replaces all files of a folder at once, as a kubelet does: each is a link into ..data, which is a link to a folder of this
// round. Programs watch for the change of that link.
func writeVolume(folder string, round int, files map[string][]byte, mode os.FileMode) error {
	const current = "..data"
	name := "..round-" + strconv.Itoa(round)
	if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if !filepath.IsLocal(path) || filepath.Dir(path) != "." {
			return fmt.Errorf("volume file %q: the lab writes no folders in volumes", path)
		}
		if err := os.WriteFile(filepath.Join(folder, name, path), files[path], mode); err != nil {
			return err
		}
	}
	before, _ := os.Readlink(filepath.Join(folder, current)) // "" in the first round
	next := filepath.Join(folder, "..new")
	if err := errors.Join(os.Symlink(name, next), os.Rename(next, filepath.Join(folder, current))); err != nil {
		return err
	}
	for path := range files {
		link := filepath.Join(folder, path)
		if _, err := os.Lstat(link); errors.Is(err, os.ErrNotExist) {
			if err := os.Symlink(filepath.Join(current, path), link); err != nil {
				return err
			}
		}
	}
	have, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range have {
		if _, is := files[entry.Name()]; !is && entry.Type()&os.ModeSymlink != 0 && entry.Name() != current {
			if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	if before == "" || before == name {
		return nil
	}
	return os.RemoveAll(filepath.Join(folder, before))
}
