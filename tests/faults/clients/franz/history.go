package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type facts map[string]any

var (
	none       = facts{}
	errAborted = errors.New("aborted where a commit was asked for")
)

// The lines of all clients of this process; an operation's number is its own in the file.
type history struct {
	lock  sync.Mutex
	file  *os.File
	count int64
}

func openHistory(path string) (*history, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &history{file: file}, err
}

func (h *history) invoke(process, kind string, told facts) int64 {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.begin(process, kind, nowNs(), told)
}

func (h *history) end(process string, op int64, kind, outcome string, told facts) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.write(process, op, kind, outcome, nowNs(), told)
}

func (h *history) look(process, kind string, askedNs int64, told facts) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.write(process, h.begin(process, kind, askedNs, none), kind, "ok", nowNs(), told)
}

func (h *history) begin(process, kind string, atNs int64, told facts) int64 {
	h.count++
	h.write(process, h.count, kind, "invoke", atNs, told)
	return h.count
}

func (h *history) write(process string, op int64, kind, outcome string, atNs int64, told facts) {
	line, err := json.Marshal(map[string]any{
		"process": process, "op": op, "type": outcome, "kind": kind, "at_ns": atNs, "facts": told,
	})
	if err == nil {
		_, err = h.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// CLOCK_MONOTONIC, which all processes of a machine share; Go's own is counted from its start.
func nowNs() int64 {
	const clockMonotonic = 1
	var now syscall.Timespec
	_, _, failed := syscall.RawSyscall(
		syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	if failed != 0 {
		panic(failed)
	}
	return now.Nano()
}

func (c *client) trouble(during string, err error) {
	c.lines.look(c.process, "trouble", nowNs(), facts{
		"during": during, "error": nameOf(err), "text": err.Error(),
	})
}

// Kafka's name of an error that a broker gave, or a word for one of the library's own.
func nameOf(err error) string {
	var known *kerr.Error
	switch {
	case errors.As(err, &known):
		return known.Message
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, context.DeadlineExceeded):
		return "TimeoutException"
	default:
		return "franz-go: " + strings.SplitN(err.Error(), ":", 2)[0]
	}
}

// The records of one transaction.
type sending struct {
	client *client
	name   string
	lock   sync.Mutex
	failed bool
}

func (c *client) newSending(name string) *sending {
	return &sending{client: c, name: name}
}

func (s *sending) hasFailed() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.failed
}

type produce func(context.Context, *kgo.Record, func(*kgo.Record, error))

func (s *sending) send(produce produce, topic string, partition int32) {
	c := s.client
	c.value++
	value := c.value
	op := c.lines.invoke(c.process, "send", facts{
		"producer": producerOf(c), "partition": placed(topic, partition), "value": value,
		"acks": "all", "is_idempotent": true, "transaction": s.name,
	})
	record := &kgo.Record{Topic: topic, Partition: partition, Value: payload(value)}
	produce(context.Background(), record, func(stored *kgo.Record, err error) {
		if err == nil {
			c.lines.end(c.process, op, "send", "ok", facts{"offset": stored.Offset})
			return
		}
		s.lock.Lock()
		s.failed = true
		s.lock.Unlock()
		// An abort drops what was not sent yet, and says so to each.
		if !errors.Is(err, kgo.ErrAborting) {
			c.trouble("send of "+s.name, err)
		}
		c.lines.end(c.process, op, "send", "info", facts{"error": err.Error()})
	})
}
