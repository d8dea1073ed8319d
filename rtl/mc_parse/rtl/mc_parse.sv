// SPDX-License-Identifier: Apache-2.0
//
// Reads the requests of a datagram, text or binary, and emits operations. Key and value of an
// operation are written before the operation itself, aligned to beats and padded with
// zeros, so each stream must have room for the longest key or value. All requests of a datagram
// become operations in order; the last one has `eod`. A request that the datagram does not hold
// completely is answered with an error and has no effect.
//
// This is the datagram: its window, how much of it is left, and which of text_reader and
// binary_reader reads it. They see the window's front and say how many bytes they take.
module mc_parse
  import wc_pkg::*;
#(
    parameter int KEY_MAX = DEFAULT_KEY_MAX,
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX
) (
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
  // A number that incr writes has up to 20 digits; the protocols' keys have up to 250 bytes; a second piece of a key of two is never
  // too long.
  if (KEY_MAX < 16 || KEY_MAX > 250) begin : g_key_max_wrong $error("KEY_MAX is 16 to 250"); end
  if (VALUE_MAX < 24) begin : g_value_max_wrong $error("VALUE_MAX is 24 at least"); end
  // Whether there is room is known a cycle late, and what is emitted is in registers before it is written: the FIFOs
  // behind have places for what comes then.
  logic room, op_room, key_room, value_room;
  logic emits, pushes_key, pushes_value, emitted, key_pushed, value_pushed;
  meta_t emit_op, emitted_op, checked_op;
  logic ends_value;
  logic [15:0] end_bytes;
  logic [63:0] key_next, value_next, key_word, value_word;
  always_ff @(posedge clk) begin
    if (rst) begin
      room <= 1'b0;
      emitted <= 1'b0;
      key_pushed <= 1'b0;
      value_pushed <= 1'b0;
    end else begin
      room <= op_room && key_room && value_room;
      emitted <= emits;
      key_pushed <= pushes_key;
      value_pushed <= pushes_value;
    end
    emitted_op <= emit_op;
    key_word <= key_next;
    value_word <= value_next;
  end
  always_comb begin
    checked_op = emitted_op;
    if (ends_value && end_bytes != 16'h0a0d) begin
      checked_op.op = OP_ERROR;
      checked_op.err = ERR_DATA;
    end
  end
  fifo #(.W($bits(meta_t)), .LOG(3), .HEAD(1'b1), .SPARE(2)) ops (
      .clk, .rst, .in_valid(emitted), .in_ready(op_room), .in_data(checked_op), .out_valid(op_valid), .out_ready(op_ready), .out_data(op)
  );
  fifo #(.W(64), .LOG(3), .SPARE(2)) keys (
      .clk, .rst, .in_valid(key_pushed), .in_ready(key_room), .in_data(key_word), .out_valid(key_valid), .out_ready(key_ready),
      .out_data(key_data)
  );
  fifo #(.W(64), .LOG(3), .SPARE(2)) values (
      .clk, .rst, .in_valid(value_pushed), .in_ready(value_room), .in_data(value_word), .out_valid(value_valid),
      .out_ready(value_ready), .out_data(value_data)
  );

  // --- The datagram. Of one that has been answered what is left is passed over.
  logic busy;
  logic binary;             // its first byte says so
  logic stopped;            // what is left of it is not read
  // Which reader reads it: registers of their own, as what they take is known late.
  logic reads_text, reads_binary;
  logic begins, drained, none_left, ready;
  logic [11:0] size;
  logic [11:0] left;        // bytes that have not been taken
  logic [11:0] left_before; // a cycle ago
  logic [11:0] left_last;   // bytes after its last LF
  logic [11:0] taken;
  logic [63:0] view;
  logic [2:0] at;
  logic first_there;
  logic [7:0] first_byte;
  logic start, cutting, piece_valid, piece_ready;
  piece_t piece;
  logic [63:0] text_key;
  // An operation that is a datagram's last one ends it in the cycle after.
  logic ends;
  assign ends = emitted && emitted_op.eod;
  assign begins = !busy && drained && info_valid && first_there;
  assign info_ready = begins;
  assign left = size - taken;

  reading_t reading, text, bin;
  logic go;
  assign go = room && ready;
  line_window window (
      .clk, .rst, .in_valid, .in_ready, .in_data, .in_bytes, .in_last, .begins, .drained, .drains(!busy), .waits(first_there),
      .first_byte, .none_left, .taken, .ready, .view, .wants(room && (bin.wants || text.wants)), .take_bytes(reading.take_bytes),
      .take_ends(room && (bin.take_ends || text.take_ends)), .at, .start,
      .cutting, .piece_valid, .piece_ready, .piece
  );
  text_reader #(.KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX)) u_text (
      .clk, .rst, .active(reads_text && !ends), .enters(begins && first_byte != 8'h80 && info.lf_end != '0), .room,
      .start, .cutting, .in_valid(piece_valid), .in_ready(piece_ready), .in_piece(piece), .ready(go), .at,
      .none_left, .left(left_before), .left_last, .key_data(text_key), .reading(text)
  );
  binary_reader #(.KEY_MAX(KEY_MAX), .VALUE_MAX(VALUE_MAX)) u_binary (
      .clk, .rst, .active(reads_binary && !ends), .room, .ready(go), .view, .at, .left, .reading(bin)
  );

  // --- Together.
  always_comb begin
    reading = binary ? bin : text;
    reading.take_bytes = reads_binary ? bin.take_bytes : text.take_bytes;
    emits = reading.emit;
    emit_op = reading.op;
    emit_op.opcode = bin.op.opcode;  // zero in text
    emit_op.opaque = bin.op.opaque;
    emit_op.initial_value = bin.op.initial_value;
    // A datagram whose last request has no reply.
    if (stopped) begin
      emits = room;
      emit_op.op = OP_NOP;
      emit_op.kbeats = '0;
      emit_op.vbeats = '0;
      emit_op.eod = 1'b1;
    end
  end
  assign pushes_key = reading.push_key;
  assign key_next = (binary ? view : text_key) & byte_mask(reading.key_part);
  assign pushes_value = reading.push_value;
  assign value_next = view & byte_mask(reading.value_part);

  always_ff @(posedge clk) begin
    ends_value <= reading.ends_value;
    end_bytes <= view[15:0];
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= 1'b0;
      stopped <= 1'b0;
      reads_text <= 1'b0;
      reads_binary <= 1'b0;
    end else begin
      reads_text <= begins ? first_byte != 8'h80 : reads_text && !ends && !text.quits;
      reads_binary <= begins ? first_byte == 8'h80 : reads_binary && !ends && !bin.quits;
      if (begins) busy <= 1'b1;
      else if (ends) busy <= 1'b0;
      stopped <= reading.quits || (stopped && !room);
    end
    if (begins) begin
      binary <= first_byte == 8'h80;
      size <= info.size;
      left_last <= info.size - info.lf_end;
    end
    left_before <= begins ? info.size : drained ? 12'd0 : left;
  end
endmodule
