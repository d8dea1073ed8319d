// SPDX-License-Identifier: Apache-2.0
//
// Composes replies from results, keys and values: the payload of a datagram's reply, in packed
// beats. The last beat of a reply has `out_last`; it has no bytes where the reply is empty or ends
// with the beat before.
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
  typedef enum logic [3:0] {
    F_IDLE, F_KEY, F_FLAGS, F_SIZE, F_CAS, F_LINE_END, F_VALUE, F_TAIL, F_TEXT, F_NUMBER,
    F_HEAD, F_HEAD_CAS
  } state_t;
  state_t state;

  // --- Texts, in one string of 8-byte chunks.
  typedef enum logic [4:0] {
    T_END, T_STORED, T_NOT_STORED, T_EXISTS, T_NOT_FOUND, T_DELETED, T_TOUCHED, T_OK, T_VERSION,
    T_MN, T_ERROR, T_FORMAT, T_DATA, T_EXPTIME, T_DELTA, T_NONNUM, T_UNSUPPORTED, T_TOOLARGE,
    B_NOT_FOUND, B_EXISTS, B_TOOLARGE, B_INVALID, B_NOT_STORED, B_NONNUM, B_UNKNOWN, B_VERSION
  } text_t;
  localparam int TEXT_BITS = 512;
  // A text's bytes, the first one at the top, and its size.
  function automatic logic [TEXT_BITS+6:0] text_of(text_t t);
    logic [TEXT_BITS-1:0] s;
    int n;
    case (t)
      T_END: begin n = 5; s = "END\015\n"; end
      T_STORED: begin n = 8; s = "STORED\015\n"; end
      T_NOT_STORED: begin n = 12; s = "NOT_STORED\015\n"; end
      T_EXISTS: begin n = 8; s = "EXISTS\015\n"; end
      T_NOT_FOUND: begin n = 11; s = "NOT_FOUND\015\n"; end
      T_DELETED: begin n = 9; s = "DELETED\015\n"; end
      T_TOUCHED: begin n = 9; s = "TOUCHED\015\n"; end
      T_OK: begin n = 4; s = "OK\015\n"; end
      T_VERSION: begin n = 26; s = "VERSION 1.6.45-warpcache\015\n"; end
      T_MN: begin n = 4; s = "MN\015\n"; end
      T_ERROR: begin n = 7; s = "ERROR\015\n"; end
      T_FORMAT: begin n = 38; s = "CLIENT_ERROR bad command line format\015\n"; end
      T_DATA: begin n = 29; s = "CLIENT_ERROR bad data chunk\015\n"; end
      T_EXPTIME: begin n = 39; s = "CLIENT_ERROR invalid exptime argument\015\n"; end
      T_DELTA: begin n = 45; s = "CLIENT_ERROR invalid numeric delta argument\015\n"; end
      T_NONNUM: begin n = 62; s = "CLIENT_ERROR cannot increment or decrement non-numeric value\015\n"; end
      T_UNSUPPORTED: begin n = 28; s = "SERVER_ERROR not supported\015\n"; end
      T_TOOLARGE: begin n = 41; s = "SERVER_ERROR object too large for cache\015\n"; end
      B_NOT_FOUND: begin n = 9; s = "Not found"; end
      B_EXISTS: begin n = 20; s = "Data exists for key."; end
      B_TOOLARGE: begin n = 10; s = "Too large."; end
      B_INVALID: begin n = 17; s = "Invalid arguments"; end
      B_NOT_STORED: begin n = 11; s = "Not stored."; end
      B_NONNUM: begin n = 47; s = "Non-numeric server-side value for incr or decr"; end
      B_UNKNOWN: begin n = 15; s = "Unknown command"; end
      default: begin n = 16; s = "1.6.45-warpcache"; end
    endcase
    if (t == B_NONNUM) n = 46;
    text_of = {7'(n), s << (TEXT_BITS - 8 * n)};
  endfunction
  // Eight bytes of it, the first one at the bottom.
  function automatic logic [63:0] chunk_of(text_t t, logic [2:0] at);
    logic [TEXT_BITS-1:0] picked;
    picked = TEXT_BITS'(text_of(t));
    for (int i = 0; i < 8; i++) chunk_of[8*i+:8] = picked[{~at, 6'd0}+9'(56-8*i)+:8];
  endfunction

  result_t q;
  text_t text, text_next;
  logic [15:0] status, status_next;
  logic silent, carries, has_text;
  // What the result in `result` asks for.
  always_comb begin
    text_next = T_END;
    status_next = 16'h00;
    has_text = 1'b1;
    if (!result.bin) begin
      case (result.outcome)
        OUT_STORED: text_next = T_STORED;
        OUT_NOT_STORED: text_next = T_NOT_STORED;
        OUT_EXISTS: text_next = T_EXISTS;
        OUT_NOT_FOUND: text_next = T_NOT_FOUND;
        OUT_DELETED: text_next = T_DELETED;
        OUT_TOUCHED: text_next = T_TOUCHED;
        OUT_OK: text_next = T_OK;
        OUT_VERSION: text_next = T_VERSION;
        OUT_NOOP: text_next = T_MN;
        OUT_ERROR:
        case (result.err)
          ERR_UNKNOWN: text_next = T_ERROR;
          ERR_DATA: text_next = T_DATA;
          ERR_EXPTIME: text_next = T_EXPTIME;
          ERR_DELTA: text_next = T_DELTA;
          ERR_NONNUM: text_next = T_NONNUM;
          ERR_UNSUPPORTED: text_next = T_UNSUPPORTED;
          ERR_TOOLARGE: text_next = T_TOOLARGE;
          default: text_next = T_FORMAT;
        endcase
        OUT_MISS: has_text = result.last_key;
        OUT_NONE, OUT_HIT, OUT_NUMBER: has_text = 1'b0;
        default: ;
      endcase
    end else begin
      case (result.outcome)
        OUT_MISS, OUT_NOT_FOUND: begin
          status_next = 16'h01;
          text_next = B_NOT_FOUND;
          has_text = !(result.outcome == OUT_MISS && result.ret_key);
        end
        OUT_EXISTS: begin
          status_next = 16'h02;
          text_next = B_EXISTS;
        end
        OUT_NOT_STORED:
        case (result.op)
          OP_ADD: begin
            status_next = 16'h02;
            text_next = B_EXISTS;
          end
          OP_REPLACE: begin
            status_next = 16'h01;
            text_next = B_NOT_FOUND;
          end
          default: begin
            status_next = 16'h05;
            text_next = B_NOT_STORED;
          end
        endcase
        OUT_VERSION: text_next = B_VERSION;
        OUT_ERROR:
        case (result.err)
          ERR_UNKNOWN, ERR_UNSUPPORTED: begin
            status_next = 16'h81;
            text_next = B_UNKNOWN;
          end
          ERR_TOOLARGE: begin
            status_next = 16'h03;
            text_next = B_TOOLARGE;
          end
          ERR_NONNUM: begin
            status_next = 16'h06;
            text_next = B_NONNUM;
          end
          default: begin
            status_next = 16'h04;
            text_next = B_INVALID;
          end
        endcase
        default: has_text = 1'b0;
      endcase
    end
    silent = 1'b0;
    if (result.outcome == OUT_NONE) silent = 1'b1;
    else if (!result.bin) silent = result.quiet;
    else if (result.quiet) begin
      case (result.outcome)
        OUT_MISS, OUT_STORED, OUT_DELETED, OUT_NUMBER, OUT_OK, OUT_NOOP: silent = 1'b1;
        default: ;
      endcase
    end
    carries = result.outcome == OUT_HIT;
  end

  logic [63:0] first8;      // the next bytes of the text
  logic [2:0] chunk;        // where those after them are
  logic [6:0] text_bytes;
  logic [TEXT_BITS+6:0] text_picked;
  assign text_picked = text_of(text_next);

  // --- Numbers: flags or the number of incr in the one, the size in the other; the CAS id
  // afterwards in the first.
  logic start_a, start_b, done_a, done_b;
  logic [63:0] value_a;
  logic [79:0] digits_a, digits_b;
  logic [4:0] count_a, count_b;
  logic cas_started;
  logic [4:0] digit_at;  // digits of the number that have been written
  decimal number_a (
      .clk, .rst, .start(start_a), .value(value_a), .done(done_a), .digits(digits_a), .count(count_a)
  );
  decimal number_b (
      .clk, .rst, .start(start_b), .value({52'd0, result.vlen}), .done(done_b), .digits(digits_b),
      .count(count_b)
  );
  function automatic logic [63:0] ascii(logic [31:0] eight_digits);
    for (int i = 0; i < 8; i++) ascii[8*i+:8] = {4'h3, eight_digits[28-4*i+:4]};
  endfunction
  function automatic logic [63:0] blank_and(logic [27:0] seven_digits);
    blank_and[7:0] = 8'h20;
    for (int i = 0; i < 7; i++) blank_and[8*(i+1)+:8] = {4'h3, seven_digits[24-4*i+:4]};
  endfunction
  logic [63:0] size_text;
  assign size_text = blank_and(digits_b[79:52]);
  logic [79:0] digits_left;
  assign digits_left = digits_a << {digit_at, 2'b00};
  logic [4:0] count_left;
  assign count_left = count_a - digit_at;

  // --- What ends an item of a text reply.
  logic [55:0] tail;
  logic [4:0] tail_bytes;
  assign tail = {8'h0a, 8'h0d, "D", "N", "E", 8'h0a, 8'h0d};
  assign tail_bytes = q.last_key ? 5'd7 : 5'd2;

  // --- Pieces.
  logic piece_valid, piece_ready, piece_last;
  logic [127:0] piece;
  logic [4:0] piece_bytes;
  logic ends;      // this piece is the result's last
  // `result` is a hit, whose first piece goes out at once; a text reply's has the key's first bytes.
  logic hit_now, hit_ready;
  assign hit_now = result_valid && !silent && carries;
  assign hit_ready = hit_now && (result.bin || key_valid);
  logic short_numbers;  // flags and size fit into one piece
  assign short_numbers = count_a == 5'd1 && count_b <= 5'd3 && !q.ret_cas;
  logic sent;
  assign sent = piece_valid && piece_ready;
  // What composes pieces and what joins them are a cycle each.
  logic joins, join_ready, join_last;
  logic [127:0] join_piece;
  logic [4:0] join_bytes;
  skid_buffer #(.W(134)) composed (
      .clk, .rst, .in_valid(piece_valid), .in_ready(piece_ready), .in_data({piece_last, piece_bytes, piece}),
      .out_valid(joins), .out_ready(join_ready), .out_data({join_last, join_bytes, join_piece})
  );
  packer pieces (
      .clk, .rst, .in_valid(joins), .in_ready(join_ready), .in_data(join_piece), .in_bytes(join_bytes),
      .in_last(join_last), .out_valid, .out_ready, .out_data, .out_bytes, .out_last
  );

  logic [5:0] key_left;
  logic [7:0] key_bytes;
  logic [8:0] value_left;
  logic [11:0] value_bytes;
  logic drops;         // the key is not part of the reply
  logic drop_ends;     // and nothing follows it

  // What a binary reply says of its body.
  logic [7:0] extras_size;
  logic [15:0] key_size;
  logic [31:0] body_size;
  logic [63:0] reply_cas;
  logic [31:0] hit_body;  // of `result`
  assign hit_body = 32'd4 + (result.ret_key ? {24'd0, result.klen} : 32'd0) + {20'd0, result.vlen};
  always_comb begin
    extras_size = (q.outcome == OUT_HIT || q.outcome == OUT_TOUCHED) ? 8'd4 : 8'd0;
    key_size = (q.ret_key && (q.outcome == OUT_HIT || q.outcome == OUT_MISS)) ? {8'd0, q.klen} : 16'd0;
    body_size = {24'd0, extras_size} + {16'd0, key_size};
    case (q.outcome)
      OUT_HIT: body_size = body_size + {20'd0, q.vlen};
      OUT_NUMBER: body_size = 32'd8;
      default: if (key_size == 16'd0) body_size = body_size + {25'd0, text_bytes};
    endcase
    reply_cas = (q.outcome == OUT_HIT || q.outcome == OUT_TOUCHED || q.outcome == OUT_STORED ||
                 q.outcome == OUT_NUMBER) ? q.cas : 64'd0;
  end

  always_comb begin
    piece_valid = 1'b0;
    piece = '0;
    piece_bytes = 5'd0;
    ends = 1'b0;
    key_ready = 1'b0;
    value_ready = 1'b0;
    case (state)
      F_KEY: begin
        piece_valid = key_valid && !drops;
        piece = {64'd0, key_data};
        piece_bytes = key_bytes > 8'd8 ? 5'd8 : {1'b0, key_bytes[3:0]};
        key_ready = drops || piece_ready;
        ends = q.bin && q.outcome == OUT_MISS && key_left == 6'd1;
        if (q.bin && q.outcome == OUT_HIT && q.vlen == 12'd0 && key_left == 6'd1) ends = 1'b1;
      end
      F_FLAGS: begin
        // A blank and up to seven digits, then further digits.
        piece_valid = done_a && done_b;
        if (short_numbers) begin
          piece = {64'd0, size_text[47:0], 4'h3, digits_a[79:76], 8'h20};
          for (int i = 0; i < 3; i++) if (count_b == 5'(i + 1)) piece[8*(i+4)+:16] = 16'h0a0d;
          piece_bytes = count_b + 5'd5;
        end else if (digit_at == 5'd0) begin
          piece = {64'd0, blank_and(digits_a[79:52])};
          piece_bytes = count_a > 5'd7 ? 5'd8 : count_a + 5'd1;
        end else begin
          piece = {64'd0, ascii(digits_left[79:48])};
          piece_bytes = count_left > 5'd8 ? 5'd8 : count_left;
        end
      end
      F_SIZE: begin
        // A blank, up to four digits and the line end.
        piece_valid = done_b;
        piece = {64'd0, size_text};
        piece_bytes = count_b + 5'd1;
        if (!q.ret_cas) begin
          for (int i = 0; i < 4; i++)
            if (count_b == 5'(i + 1)) piece[8*(i+2)+:16] = 16'h0a0d;
          piece_bytes = count_b + 5'd3;
        end
      end
      F_CAS: begin
        piece_valid = done_a && cas_started;
        if (digit_at == 5'd0) begin
          piece = {64'd0, blank_and(digits_a[79:52])};
          piece_bytes = count_a > 5'd7 ? 5'd8 : count_a + 5'd1;
        end else begin
          piece = {64'd0, ascii(digits_left[79:48])};
          piece_bytes = count_left > 5'd8 ? 5'd8 : count_left;
        end
      end
      F_LINE_END: begin
        piece_valid = 1'b1;
        piece = 128'h0a0d;
        piece_bytes = 5'd2;
        ends = q.outcome == OUT_NUMBER;
      end
      F_VALUE: begin
        piece_valid = value_valid;
        piece = {64'd0, value_data};
        piece_bytes = value_bytes > 12'd8 ? 5'd8 : {1'b0, value_bytes[3:0]};
        value_ready = piece_ready;
        ends = value_left == 9'd1;
        // What ends the item goes with its last bytes.
        if (!q.bin && ends) begin
          piece = {64'd0, value_data} | ({72'd0, tail} << {value_bytes[3:0], 3'b000});
          piece_bytes = {1'b0, value_bytes[3:0]} + tail_bytes;
        end
      end
      F_TAIL: begin
        piece_valid = 1'b1;
        piece = {72'd0, tail};
        piece_bytes = tail_bytes;
        ends = 1'b1;
      end
      F_TEXT: begin
        piece_valid = 1'b1;
        piece = {64'd0, first8};
        piece_bytes = text_bytes > 7'd8 ? 5'd8 : {1'b0, text_bytes[3:0]};
        ends = text_bytes <= 7'd8;
      end
      F_NUMBER: begin
        if (q.bin) begin
          piece_valid = 1'b1;
          piece = {64'd0, swap64(q.number)};
          piece_bytes = 5'd8;
          ends = 1'b1;
        end else begin
          piece_valid = done_a;
          piece = {64'd0, ascii(digits_left[79:48])};
          piece_bytes = count_left > 5'd8 ? 5'd8 : count_left;
        end
      end
      F_HEAD: begin
        piece_valid = 1'b1;
        piece = {q.opaque, swap32(body_size), swap16(status), 8'd0, extras_size, swap16(key_size), q.opcode, 8'h81};
        piece_bytes = 5'd16;
      end
      F_HEAD_CAS: begin
        // And the extras.
        piece_valid = 1'b1;
        piece = {32'd0, swap32(q.flags), swap64(reply_cas)};
        piece_bytes = extras_size == 8'd0 ? 5'd8 : 5'd12;
        ends = body_size == {24'd0, extras_size};
      end
      default: begin
        // A result without a reply may still end its datagram.
        if (result_valid && silent && result.kbeats == 6'd0 && !carries && result.eod) begin
          piece_valid = 1'b1;
          ends = 1'b1;
        end
        // A hit begins at once.
        if (hit_now) begin
          piece_valid = hit_ready;
          if (result.bin) begin
            piece = {result.opaque, swap32(hit_body), 16'd0, 8'd0, 8'd4, result.ret_key ? {result.klen, 8'd0} : 16'd0,
                     result.opcode, 8'h81};
            piece_bytes = 5'd16;
          end else begin
            piece = {16'd0, key_data, " ", "E", "U", "L", "A", "V"};
            piece_bytes = result.klen > 8'd8 ? 5'd14 : result.klen[4:0] + 5'd6;
            key_ready = piece_ready;
          end
        end
      end
    endcase
    piece_last = ends && (state == F_IDLE ? result.eod : q.eod);
    // A dropped key that ends the datagram.
    if (state == F_KEY && drops && key_left == 6'd1 && drop_ends) begin
      piece_valid = key_valid;
      piece_bytes = 5'd0;
      piece_last = q.eod;
      key_ready = piece_ready;
      ends = 1'b1;
    end
  end

  assign result_ready = state == F_IDLE && !(hit_now && !(hit_ready && piece_ready)) &&
                        !(result_valid && silent && result.kbeats == 6'd0 && !carries && result.eod && !piece_ready);
  assign start_a = (state == F_IDLE && result_valid) || (state == F_SIZE && sent && q.ret_cas);
  assign start_b = state == F_IDLE && result_valid;
  assign value_a = state == F_SIZE ? q.cas : result.outcome == OUT_NUMBER ? result.number
                                                                          : {32'd0, result.flags};

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= F_IDLE;
    end else begin
      case (state)
        F_IDLE: begin
          q <= result;
          text <= text_next;
          status <= status_next;
          first8 <= chunk_of(text_next, 3'd0);
          chunk <= 3'd1;
          text_bytes <= has_text ? text_picked[TEXT_BITS+6:TEXT_BITS] : 7'd0;
          key_left <= result.kbeats;
          key_bytes <= result.klen;
          value_left <= result.vbeats;
          value_bytes <= result.vlen;
          digit_at <= '0;
          cas_started <= 1'b0;
          // A key that has been forwarded although the reply does not show it.
          drops <= result.kbeats != 6'd0 && (silent || (result.outcome == OUT_MISS && !result.bin));
          drop_ends <= silent || !has_text;
          if (result_valid && result_ready) begin
            if (silent && result.kbeats == 6'd0) state <= F_IDLE;
            else if (silent) state <= F_KEY;
            else if (hit_now) begin
              state <= result.bin ? F_HEAD_CAS : result.kbeats == 6'd1 ? F_FLAGS : F_KEY;
              if (!result.bin) begin
                key_left <= result.kbeats - 6'd1;
                key_bytes <= result.klen - 8'd8;
              end
            end else if (result.bin) state <= F_HEAD;
            else if (result.kbeats != 6'd0) state <= F_KEY;
            else if (result.outcome == OUT_NUMBER) state <= F_NUMBER;
            else if (has_text) state <= F_TEXT;
            else if (result.eod) state <= F_TEXT;  // an empty piece ends the datagram
          end
        end
        F_KEY:
        if (key_valid && key_ready) begin
          key_left <= key_left - 6'd1;
          key_bytes <= key_bytes - 8'd8;
          if (key_left == 6'd1) begin
            if (drops) state <= drop_ends ? F_IDLE : F_TEXT;
            else if (!q.bin) state <= F_FLAGS;
            else state <= ends ? F_IDLE : F_VALUE;
          end
        end
        F_FLAGS:
        if (sent) begin
          digit_at <= digit_at + piece_bytes - {4'd0, digit_at == 5'd0};
          if (short_numbers) begin
            state <= q.vlen == 12'd0 ? F_TAIL : F_VALUE;
          end else if ((digit_at == 5'd0 && count_a <= 5'd7) || (digit_at != 5'd0 && count_left <= 5'd8)) begin
            state <= F_SIZE;
            digit_at <= '0;
          end
        end
        F_SIZE:
        if (sent) begin
          cas_started <= 1'b1;
          if (q.ret_cas) state <= F_CAS;
          else state <= q.vlen == 12'd0 ? F_TAIL : F_VALUE;
        end
        F_CAS:
        if (sent) begin
          digit_at <= digit_at + piece_bytes - {4'd0, digit_at == 5'd0};
          if ((digit_at == 5'd0 && count_a <= 5'd7) || (digit_at != 5'd0 && count_left <= 5'd8))
            state <= F_LINE_END;
        end
        F_LINE_END: if (sent) state <= ends ? F_IDLE : q.vlen == 12'd0 ? F_TAIL : F_VALUE;
        F_VALUE:
        if (sent) begin
          value_left <= value_left - 9'd1;
          value_bytes <= value_bytes - 12'd8;
          if (ends) state <= F_IDLE;
        end
        F_TAIL: if (sent) state <= F_IDLE;
        F_TEXT:
        if (sent) begin
          first8 <= chunk_of(text, chunk);
          chunk <= chunk + 3'd1;
          text_bytes <= text_bytes - 7'd8;
          if (ends) state <= F_IDLE;
        end
        F_NUMBER:
        if (sent) begin
          digit_at <= digit_at + piece_bytes;
          if (q.bin) state <= F_IDLE;
          else if (count_left <= 5'd8) state <= F_LINE_END;
        end
        F_HEAD: if (sent) state <= F_HEAD_CAS;
        F_HEAD_CAS:
        if (sent) begin
          if (ends) state <= F_IDLE;
          else if (key_size != 16'd0) state <= F_KEY;
          else if (q.outcome == OUT_HIT) state <= F_VALUE;
          else if (q.outcome == OUT_NUMBER) state <= F_NUMBER;
          else state <= F_TEXT;
        end
        default: state <= F_IDLE;
      endcase
    end
  end

  logic unused;
  assign unused = ^q.kbeats;
endmodule
