package config

// Text is text of several lines. The line break at its end, which YAML's block style adds, is part of it.
type Text string
