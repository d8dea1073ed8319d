// SPDX-License-Identifier: Apache-2.0
//
// Composes replies from results, keys and values: the payload of a datagram's reply, in packed
// beats. The last beat of a reply has `out_last`; it has no bytes where the reply is empty or ends
// with the beat before.
//
// This takes a result after the other and chooses the pieces of its reply; reply_plan says what they are to be, and piece_writer joins them.
module mc_format
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        result_valid,
    output logic        result_ready,
    input  result_t     result,
    input  logic        key_valid,
    output logic        key_ready,
    input  logic [63:0] key_data,
    input  logic        value_valid,
    output logic        value_ready,
    input  logic [63:0] value_data,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last
);
  piece_kind_t state;

  // --- What a result asks for is found out in the cycle before it can be taken.
  task_t coming, d;
  reply_plan u_plan (.result, .plan(coming));
  logic d_valid, d_ready;
  skid_buffer #(.W($bits(task_t))) tasks (
      .clk, .rst, .in_valid(result_valid), .in_ready(result_ready), .in_data(coming), .out_valid(d_valid), .out_ready(d_ready),
      .out_data(d)
  );

  // --- The result in progress. The next one is taken in the cycle in which its last piece leaves.
  result_t q;
  logic [7:0] status;
  logic load, loaded, done;
  text_t text;
  logic [2:0] number_below, cas_below;
  logic piece_valid, piece_ready, piece_last, piece_number;
  logic [12:0] body_size;
  logic has_extras, shows_key, has_cas, bare, text_follows;
  logic [5:0] key_left;     // words
  logic [8:0] value_left;
  logic last_key_word, last_value_word, no_value;
  logic key_ends;           // last_key_word, and nothing is behind the key
  assign d_ready = state == F_IDLE || done;
  assign load = d_valid && d_ready;

  // --- Its text is fetched from memory while what is in front of it leaves, or in four cycles.
  logic text_valid, text_take, text_last;
  logic [6:0] text_size;
  logic [63:0] text_word;
  logic [3:0] text_word_bytes;
  reply_text texts (
      .clk, .rst, .measured(d.text), .size(text_size), .start(loaded), .follows(text_follows), .text,
      .out_valid(text_valid), .out_ready(text_take), .out_data(text_word), .out_bytes(text_word_bytes), .out_last(text_last)
  );
  assign text_take = state == F_TEXT && piece_ready;

  // --- Numbers: flags or the number of incr in the one, the CAS id afterwards. The size, of at most four digits, is there two
  // cycles after its result has been taken, before it is needed.
  logic starts_cas, cas_starts, take_a, done_a, last_a;
  logic one_digit;  // flags of one digit go with the size
  logic [31:0] digits_a;
  logic [4:0] count_a;
  decimal number_a (
      .clk, .rst, .clear(load || starts_cas), .start(loaded || cas_starts), .value(cas_starts ? q.cas : q.number),
      .below(cas_starts ? cas_below : number_below), .take(take_a), .done(done_a), .digits(digits_a), .count(count_a), .is_one(one_digit), .is_last(last_a)
  );
  always_ff @(posedge clk) begin
    loaded <= load && !rst;
    cas_starts <= starts_cas && !rst;
  end
  logic [15:0] size_upper, size_digits, digits_b;
  logic [1:0] size_bits;
  logic [2:0] count_b;
  assign size_digits = with_bits(size_upper, {1'b0, size_bits}, 2);
  always_ff @(posedge clk) begin
    if (load) begin
      size_upper <= with_bits({4'd0, d.vlen_digits}, d.result.vlen[4:2], 3);
      size_bits <= d.result.vlen[1:0];
    end
    if (size_digits[15:12] != 4'd0) {count_b, digits_b} <= {3'd4, size_digits};
    else if (size_digits[11:8] != 4'd0) {count_b, digits_b} <= {3'd3, size_digits[11:0], 4'd0};
    else if (size_digits[7:4] != 4'd0) {count_b, digits_b} <= {3'd2, size_digits[7:0], 8'd0};
    else {count_b, digits_b} <= {3'd1, size_digits[3:0], 12'd0};
  end

  logic of_size;
  number_t number_part;
  assign of_size = state == F_SIZE || (state == F_FLAGS && one_digit);
  assign number_part.with_flag = state == F_FLAGS && one_digit;
  assign number_part.blank_behind = of_size ? q.ret_cas : state == F_FLAGS;
  assign number_part.all = of_size || last_a;
  assign number_part.flag = digits_a[31:28];
  assign number_part.count = of_size ? {1'b0, count_b} : count_a[3:0];
  assign number_part.digits = of_size ? {digits_b, 16'd0} : digits_a;

  // --- A key's word, and in a text reply a blank behind the key.
  logic [71:0] key_text;
  logic [3:0] key_bytes;  // of the word
  assign key_bytes = last_key_word && q.klen[2:0] != 3'd0 ? {1'b0, q.klen[2:0]} : 4'd8;
  always_comb begin
    key_text = {8'd0, key_data};
    for (int i = 1; i < 9; i++) if (!q.bin && last_key_word && q.klen[2:0] == 3'(i)) key_text[8*i+5] = 1'b1;
  end

  // --- What ends an item of a text reply goes with its last bytes.
  localparam logic [55:0] END_TEXT = {8'h0a, 8'h0d, "D", "N", "E", 8'h0a, 8'h0d};
  logic [119:0] tail;
  logic [3:0] value_bytes;
  logic [4:0] tail_bytes;
  assign value_bytes = last_value_word && q.vlen[2:0] != 3'd0 ? {1'b0, q.vlen[2:0]} : 4'd8;
  assign tail_bytes = q.last_key ? 5'd7 : 5'd2;
  always_comb begin
    tail = '0;
    for (int n = 1; n < 9; n++)
      if (q.vlen[2:0] == 3'(n)) tail = {64'd0, q.last_key ? END_TEXT : {40'd0, END_TEXT[15:0]}} << (8 * n);
  end

  // --- Pieces. Bytes above a piece's size are zero.
  logic [127:0] piece;
  logic [4:0] piece_bytes;
  logic ends;      // this piece is the result's last
  logic sent;
  assign sent = piece_valid && piece_ready;
  piece_writer writer (
      .clk, .rst, .in_valid(piece_valid), .in_ready(piece_ready), .in_number(piece_number), .in_data(piece), .in_bytes(piece_bytes),
      .in_last(piece_last), .out_valid, .out_ready, .out_data, .out_bytes, .out_last
  );
  always_comb begin
    piece_valid = 1'b0;
    piece = '0;
    piece_bytes = 5'd0;
    piece_number = 1'b0;
    ends = 1'b0;
    case (state)
      F_SKIP: begin
        // A result without a reply may still end its datagram.
        piece_valid = q.eod;
        ends = 1'b1;
      end
      F_FIRST: begin
        piece_valid = key_valid;
        piece = {8'd0, key_text, " ", "E", "U", "L", "A", "V"};
        piece_bytes = {1'b0, key_bytes} + 5'd6 + {4'd0, last_key_word};
      end
      F_KEY: begin
        piece_valid = key_valid;
        piece = {56'd0, key_text};
        piece_bytes = {1'b0, key_bytes} + {4'd0, !q.bin && last_key_word};
        ends = key_ends;
      end
      F_FLAGS, F_CAS: begin
        piece_valid = done_a;
        piece = 128'(number_part);
        piece_number = 1'b1;
      end
      F_SIZE: begin
        piece_valid = 1'b1;
        piece = 128'(number_part);
        piece_number = 1'b1;
      end
      F_VALUE: begin
        piece_valid = value_valid;
        piece = {64'd0, value_data};
        piece_bytes = {1'b0, value_bytes};
        ends = last_value_word;
        if (!q.bin && last_value_word) begin
          piece = {8'd0, tail} | {64'd0, value_data};
          piece_bytes = {1'b0, value_bytes} + tail_bytes;
        end
      end
      F_TAIL: begin
        piece_valid = 1'b1;
        piece = {72'd0, tail[119:64]};
        piece_bytes = tail_bytes;
        ends = 1'b1;
      end
      F_TEXT: begin
        piece_valid = text_valid;
        piece = {64'd0, text_word};
        piece_bytes = {1'b0, text_word_bytes};
        ends = text_last;
      end
      F_NUMBER: begin
        piece_valid = q.bin || done_a;
        piece = q.bin ? {64'd0, swap64(q.number)} : 128'(number_part);
        piece_bytes = 5'd8;
        piece_number = !q.bin;
        ends = q.bin || last_a;
      end
      F_HEAD: begin
        piece_valid = 1'b1;
        piece = {q.opaque, swap32({19'd0, body_size}), status, 16'd0, has_extras ? 8'd4 : 8'd0,
                 shows_key ? {q.klen, 8'd0} : 16'd0, q.opcode, 8'h81};
        piece_bytes = 5'd16;
      end
      F_EXTRAS: begin
        // The CAS id, and flags.
        piece_valid = 1'b1;
        piece = {32'd0, has_extras ? swap32(q.flags) : 32'd0, has_cas ? swap64(q.cas) : 64'd0};
        piece_bytes = has_extras ? 5'd12 : 5'd8;
        ends = bare;
      end
      default: ;
    endcase
    piece_last = ends && q.eod;
  end
  // `ends` and `sent`, but without numbers that end nothing. What a state waits for is one choice, and what takes pieces comes after it.
  logic may_be_done;  // if the piece is taken
  assign may_be_done = (state == F_KEY && key_valid && key_ends) || (state == F_VALUE && value_valid && last_value_word) ||
                       (state == F_TEXT && text_valid && text_last) || (state == F_NUMBER && (q.bin || (done_a && last_a))) ||
                       (state == F_EXTRAS && bare) || state == F_TAIL || state == F_SKIP;
  assign done = (may_be_done && piece_ready) || (state == F_SKIP && !q.eod);
  assign key_ready = state == F_DROP || ((state == F_FIRST || state == F_KEY) && piece_ready);
  assign value_ready = state == F_VALUE && piece_ready;
  // `sent`, of these states alone: a key or a value that comes does not matter.
  assign starts_cas = state == F_FLAGS && piece_ready && done_a && last_a && q.ret_cas;
  assign take_a = piece_ready && done_a && ((state == F_FLAGS && !one_digit) || state == F_CAS || state == F_NUMBER);

  piece_kind_t value_state;
  assign value_state = no_value ? F_TAIL : F_VALUE;

  always_ff @(posedge clk) begin
    if (load) begin
      q <= d.result;
      status <= d.status;
      text <= d.text;
      number_below <= d.number_below;
      cas_below <= d.cas_below;
      text_follows <= d.text_follows;
      body_size <= d.text_follows ? {6'd0, text_size} : d.body;
      bare <= d.bare;
      has_extras <= d.has_extras;
      has_cas <= d.has_cas;
      shows_key <= d.shows_key;
      no_value <= d.result.vlen == 12'd0;
      key_left <= d.result.kbeats;
      last_key_word <= d.last_key_word;
      key_ends <= d.last_key_word && d.result.bin && d.result.vlen == 12'd0;
      value_left <= d.result.vbeats;
      last_value_word <= d.last_value_word;
    end else begin
      if (key_valid && key_ready) begin
        key_left <= key_left - 6'd1;
        last_key_word <= key_left == 6'd2;
        key_ends <= key_left == 6'd2 && q.bin && no_value;
      end
      if (value_valid && value_ready) begin
        value_left <= value_left - 9'd1;
        last_value_word <= value_left == 9'd2;
      end
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= F_IDLE;
    end else if (d_ready) begin
      state <= d_valid ? d.first : F_IDLE;
    end else begin
      case (state)
        // Keys that have been forwarded although the reply does not show them.
        F_DROP: if (key_valid && last_key_word) state <= text_follows ? F_TEXT : F_SKIP;
        F_FIRST: if (sent) state <= last_key_word ? F_FLAGS : F_KEY;
        F_KEY: if (sent && last_key_word) state <= q.bin ? F_VALUE : F_FLAGS;
        F_FLAGS: if (sent && last_a) state <= !one_digit ? F_SIZE : q.ret_cas ? F_CAS : value_state;
        F_SIZE: if (sent) state <= q.ret_cas ? F_CAS : value_state;
        F_CAS: if (sent && last_a) state <= value_state;
        F_HEAD: if (sent) state <= F_EXTRAS;
        F_EXTRAS:
        if (sent) begin
          if (shows_key) state <= F_KEY;
          else if (q.outcome == OUT_HIT) state <= F_VALUE;
          else state <= q.outcome == OUT_NUMBER ? F_NUMBER : F_TEXT;
        end
        default: ;
      endcase
    end
  end

  logic unused;
  assign unused = (^q.kbeats) ^ (^q.vbeats);
endmodule
