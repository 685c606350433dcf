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
	dataFolder = "data"       // of a tool's folder in the cache: its data files
	recordFile = "build.json" // of a tool's folder in the cache: its Record
)

// Record says what a build in the cache is and what it took.
type Record struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Go      string        `json:"go"`
	Wall    time.Duration `json:"wall"` // nanoseconds
	CPU     time.Duration `json:"cpu"`  // nanoseconds, of go and all that it started
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

// toolDir is where a build of the tool lives.
func toolDir(cache string, t Tool, key string) string {
	return filepath.Join(cache, "tools", t.Name, key)
}

// logFile is where the output of building the tool goes; it stays after a failure.
func logFile(cache string, t Tool, key string) string {
	return filepath.Join(cache, "tools", t.Name, key+".log")
}

// readRecord returns the record of a finished build, or fs.ErrNotExist where there is none.
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

// diskUsage is the size of all files below dir; links count nothing.
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
