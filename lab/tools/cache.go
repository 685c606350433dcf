package tools

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	dataFolder = "data"       // data files in a tool's folder of the cache
	recordFile = "build.json" // Record in a tool's folder of the cache
)

// Record describes a build in the cache.
type Record struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Go      string        `json:"go"`
	Wall    time.Duration `json:"wall"` // nanoseconds
	CPU     time.Duration `json:"cpu"`  // nanoseconds, of go and its children
	Bytes   int64         `json:"bytes"`
}

// DefaultCache is ${XDG_CACHE_HOME:-~/.cache}/slipway.
func DefaultCache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(base, "slipway"), nil
}

// toolDir is the folder of a build.
func toolDir(cache string, t Tool, key string) string {
	return filepath.Join(cache, "tools", t.Name, key)
}

// logFile is the log of a build. It is kept after a failure.
func logFile(cache string, t Tool, key string) string {
	return filepath.Join(cache, "tools", t.Name, key+".log")
}

// readRecord returns the record of a finished build, or fs.ErrNotExist.
func readRecord(dir string) (Record, error) {
	var r Record
	content, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	return r, nil
}

func writeRecord(dir string, r Record) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordFile), append(content, '\n'), 0o644)
}

// diskUsage is the size of all files below dir, without links.
func diskUsage(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		bytes += info.Size()
		return nil
	})
	return bytes, err
}
