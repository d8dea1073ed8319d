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
  // --- The window. Bytes are marked when they come in: which ones are delimiters or digits is needed at
  // once when they are at its front.
  localparam int BITS = 12;
  logic [8*BITS-1:0] marked;
  logic [24*BITS-1:0] window_view;
  logic [191:0] view;
  marks_t marks;
  logic [4:0] count;
  logic [3:0] take;
  logic [24:0] at_least;
  logic tail;
  always_comb begin
    for (int i = 0; i < 8; i++)
      marked[BITS*i+:BITS] = {in_data[8*i+:8] >= "0" && in_data[8*i+:8] <= "9", in_data[8*i+:8] == 8'h20,
                              in_data[8*i+:8] == 8'h0d, in_data[8*i+:8] == 8'h0a, in_data[8*i+:8]};
    for (int i = 0; i < 24; i++) view[8*i+:8] = window_view[BITS*i+:8];
    for (int i = 0; i < 17; i++)
      {marks.blank[i], marks.cr[i], marks.lf[i]} = window_view[BITS*i+8+:3];
    marks.digit = window_view[BITS-1];
  end
  byte_window #(.BITS(BITS)) window (
      .clk, .rst, .in_valid, .in_ready, .in_data(marked), .in_bytes, .in_last, .view(window_view), .count, .at_least,
      .tail, .take
  );
  window_t w;
  assign w.full8 = at_least[8];
  assign w.full17 = at_least[17];
  assign w.has8 = at_least[8] || tail;
  assign w.has10 = at_least[10] || tail;
  assign w.has16 = at_least[16] || tail;
  logic room;
  assign room = op_ready && key_ready && value_ready;

  // --- The datagram.
  logic [11:0] pos;         // bytes taken of it
  logic [11:0] left, left_next;  // bytes that are not taken yet
  logic none_left;
  logic eod_sent;
  logic first;              // nothing of it has been taken
  logic binary;             // its first byte says so
  logic discards;           // what is left of it is not read
  logic over;               // it has been read
  logic text_between, binary_between;  // no request has been begun
  assign over = info_valid && !first && none_left && text_between && binary_between;
  logic reads_text, reads_binary, turns_binary;
  assign reads_text = info_valid && !binary && !discards && !over && !turns_binary;
  assign turns_binary = first && view[7:0] == 8'h80 && text_between;
  assign reads_binary = info_valid && binary && !discards && !over;
  logic line_complete;      // the line that starts here has an end
  assign line_complete = info.lf_end > pos;

  reading_t text, bin;
  text_reader u_text (
      .clk, .rst, .active(reads_text), .room, .view(view[127:0]), .marks, .w, .left, .line_complete, .between(text_between),
      .reading(text)
  );
  binary_reader u_binary (
      .clk, .rst, .active(reads_binary), .room, .view(view[63:0]), .w, .left, .between(binary_between), .reading(bin)
  );

  // --- Together.
  reading_t reading;
  logic emit;
  always_comb begin
    reading = binary ? bin : text;
    take = reading.take;
    if (discards) take = room && !none_left && w.has8 ? (at_least[9] ? 4'd8 : count[3:0]) : 4'd0;
    emit = reading.emit;
    op = reading.op;
    op.eod = left == {8'd0, take} || reading.stops;
    // A datagram whose last request has no reply.
    if (over) begin
      emit = op_ready && !eod_sent;
      op = '0;
      op.op = OP_NOP;
      op.eod = 1'b1;
    end
  end
  assign op_valid = emit;
  assign key_valid = reading.push_key;
  assign key_data = view[63:0] & byte_mask(reading.key_part);
  assign value_valid = reading.push_value;
  assign value_data = view[63:0] & byte_mask(reading.value_part);
  assign left_next = (first && !binary && !discards ? info.size : left) - {8'd0, take};
  assign info_ready = over && (eod_sent || op_ready);

  always_ff @(posedge clk) begin
    if (rst || info_ready) begin
      pos <= '0;
      first <= 1'b1;
      eod_sent <= 1'b0;
      binary <= 1'b0;
      discards <= 1'b0;
    end else begin
      pos <= pos + {8'd0, take};
      if (take != 4'd0) first <= 1'b0;
      if (emit && op.eod) eod_sent <= 1'b1;
      if (info_valid && turns_binary && at_least[1]) binary <= 1'b1;
      if (reading.stops) discards <= 1'b1;
    end
    left <= left_next;
    none_left <= left_next == 12'd0;
  end
endmodule
