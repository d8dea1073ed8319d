// SPDX-License-Identifier: Apache-2.0
//
// Reads the requests of a datagram, text or binary, and emits operations. Key and value of an
// operation go to their streams before the operation itself, aligned to beats and padded with
// zeros, so each stream must have room for the longest key or value. All requests of a datagram
// become operations in order; the last one has `eod`. A request that the datagram does not hold
// completely is answered with an error and has no effect.
//
// This is the datagram: its window, how much of it is left, and which of text_reader and
// binary_reader reads it. They see the window's front and say how many bytes they take.
module mc_parse
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        info_valid,
    output logic        info_ready,
    input  info_t       info,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    output logic        op_valid,
    input  logic        op_ready,
    output meta_t       op,
    output logic        key_valid,
    input  logic        key_ready,
    output logic [63:0] key_data,
    output logic        value_valid,
    input  logic        value_ready,
    output logic [63:0] value_data
);
  logic room;
  assign room = op_ready && key_ready && value_ready;

  // --- The datagram. Of one that has been answered what is left is passed over.
  logic busy;
  logic binary;             // its first byte says so
  logic stopped;            // what is left of it is not read
  logic begins, drained, none_left, ready;
  logic [11:0] size;
  logic [11:0] left;        // bytes that have not been taken
  logic [11:0] left_before; // a cycle ago
  logic [11:0] left_last;   // bytes after its last LF
  logic [11:0] taken;
  logic [63:0] view;
  logic first_there;
  logic [7:0] first_byte;
  logic start, cutting, piece_valid, piece_ready;
  piece_t piece;
  assign begins = !busy && drained && info_valid && first_there;
  assign info_ready = begins;
  assign left = size - taken;

  reading_t reading, text, bin;
  line_window window (
      .clk, .rst, .in_valid, .in_ready, .in_data, .in_bytes, .in_last, .begins, .drained, .drains(!busy), .waits(first_there),
      .first_byte, .none_left, .taken, .ready, .view, .take(reading.take), .take_bytes(reading.take_bytes), .start,
      .cutting, .piece_valid, .piece_ready, .piece
  );
  text_reader u_text (
      .clk, .rst, .active(busy && !binary && !stopped), .enters(begins && first_byte != 8'h80 && info.lf_end != '0), .room,
      .start, .cutting, .piece_valid, .piece_ready, .piece, .ready, .view(view[15:0]), .none_left, .left(left_before), .left_last, .reading(text)
  );
  binary_reader u_binary (
      .clk, .rst, .active(busy && binary && !stopped), .room, .ready, .view, .left, .reading(bin)
  );

  // --- Together.
  always_comb begin
    reading = binary ? bin : text;
    op_valid = reading.emit;
    op = reading.op;
    op.opcode = bin.op.opcode;  // zero in text
    op.opaque = bin.op.opaque;
    op.initial_value = bin.op.initial_value;
    // A datagram whose last request has no reply.
    if (stopped) begin
      op_valid = op_ready;
      op.op = OP_NOP;
      op.kbeats = '0;
      op.vbeats = '0;
      op.eod = 1'b1;
    end
  end
  assign key_valid = reading.push_key;
  assign key_data = (binary ? view : piece.data) & byte_mask(reading.key_part);
  assign value_valid = reading.push_value;
  assign value_data = view & byte_mask(reading.value_part);

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= 1'b0;
      stopped <= 1'b0;
    end else begin
      if (begins) busy <= 1'b1;
      else if (op_valid && op.eod) busy <= 1'b0;
      stopped <= reading.stops && !reading.emit ? 1'b1 : stopped && !op_valid;
    end
    if (begins) begin
      binary <= first_byte == 8'h80;
      size <= info.size;
      left_last <= info.size - info.lf_end;
    end
    left_before <= begins ? info.size : drained ? 12'd0 : left;
  end
endmodule
