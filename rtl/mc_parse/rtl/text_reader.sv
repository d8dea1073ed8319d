// SPDX-License-Identifier: Apache-2.0
//
// Reads the text requests of a datagram: a word of up to 8 bytes, or 8 bytes of a longer one, a cycle; a number's digit a
// cycle; then 8 bytes of a value a cycle. line_window cuts lines into words.
//
// Lines of the get family, storage commands, delete, incr, decr, touch, flush_all, version,
// verbosity and mn are understood; other commands that memcached knows are OP_ERROR with
// ERR_UNSUPPORTED.
module text_reader
  import wc_pkg::*;
#(
    parameter int KEY_MAX = DEFAULT_KEY_MAX,
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         active,    // the datagram is text
    input  logic         enters,    // it begins now, with a line that has an end
    input  logic         room,      // for an operation, its key and its value
    output logic         start,     // a line is to be cut
    input  logic         cutting,   // it is not yet as a whole
    input  logic         in_valid,
    output logic         in_ready,
    input  piece_t       in_piece,
    input  logic         ready,     // bytes of a value, and room
    input  logic [2:0]   at,        // where in their beat they begin
    input  logic         none_left,
    input  logic [11:0]  left,      // bytes of the datagram, a cycle ago
    input  logic [11:0]  left_last, // of these, those after the last line's end
    output logic [63:0]  key_data,  // with push_key
    output reading_t     reading
);
  typedef enum logic [3:0] {
    S_COMMAND, S_NAME, S_ARG, S_KEY, S_NUMBER, S_SKIP_WORD, S_EOL, S_BODY, S_BODY_END, S_REFUSE, S_REFUSED, S_CLOSE
  } state_t;
  state_t state;

  logic piece_valid, piece_ready;
  word_t word;
  piece_t piece;
  assign piece = word.piece;
  assign key_data = piece.data;
  text_words words (.clk, .rst, .in_valid, .in_ready, .in_piece, .out_valid(piece_valid), .out_ready(piece_ready), .out_word(word));
  command_t command, named_long;
  long_t begun;
  meta_t m;                 // of the operation in progress
  logic [2:0] field;        // words of the line after the command
  logic last_is_noreply;
  logic bad_word;           // of a number
  logic bad_line;           // flags, exptime or the CAS id are not numbers
  logic bad_length;
  logic get_pending;        // keys of this line have been emitted, END has not
  logic key_long;
  logic too_short;
  err_t refusal;
  logic [11:0] body_left;
  logic body_missing;       // the datagram ends before it does
  logic body_is_last;       // or with it
  logic [12:0] left_but_2;
  assign left_but_2 = {1'b0, left} - 13'd2;
  assign body_missing = left_but_2[12] || m.vlen > left_but_2[11:0];
  // A command of more than 8 bytes.
  always_comb begin
    named_long = C_UNKNOWN;
    if (word.completes[begun]) begin
      case (begun)
        LONG_NONE: ;
        LONG_FLUSH: named_long = C_FLUSH;
        LONG_VERBOSITY: named_long = C_VERBOSITY;
        default: named_long = C_UNSUPPORTED;
      endcase
    end
  end

  logic [2:0] field_next;
  field_t kind;             // found out in the cycle before it is read
  // The keys of a gat whose time is not a number are not looked up.
  logic refuses_gat;
  assign refuses_gat = command == C_GAT && field != 3'd0 && bad_word;

  // --- Steps.
  logic go, go8, go_arg, begins_line, line_complete, stale;
  logic ends_number;        // a number's word does, or is no number
  assign go = room && piece_valid;
  assign go8 = active && ready;
  // A number is complete a cycle after its last digit.
  logic counted, counted_spoilt;
  logic [2:0] counted_field;
  assign go_arg = go && (!counted || (kind.is_number && piece.len != 4'd0));
  assign begins_line = active && state == S_COMMAND && room && !cutting && !in_valid && !piece_valid && !stale;
  assign line_complete = left > left_last;
  assign start = enters || (begins_line && line_complete);
  state_t after_word;       // where a piece ends one
  assign after_word = piece.ends_line ? S_EOL : S_ARG;
  logic advances;           // to the next field
  logic [2:0] field_after;
  assign field_after = field != 3'd7 ? field + 3'd1 : field;
  assign advances = state == S_ARG && go_arg && piece.len != 4'd0 && !refuses_gat;
  assign field_next = advances ? field_after : field;
  always_ff @(posedge clk)
    kind <= state == S_COMMAND ? field_of(word.named, 3'd0) : state == S_NAME ? field_of(named_long, 3'd0) :
            advances ? field_of(command, field_after) : field_of(command, field);

  // --- A number.
  logic negative, any_digit;
  logic [63:0] number;
  logic [4:0] digits;
  // It goes on with the byte `byte_at` of its piece. What that byte does is found out in the cycle before.
  logic [3:0] byte_at, byte_next;  // byte_next: in this piece
  logic known, is_digit, is_last;
  logic [3:0] nibble;
  logic begins_number;      // in S_ARG
  assign begins_number = kind.is_number && (piece.digit[0] || (piece.minus && kind.is_signed));
  assign byte_next = state != S_NUMBER ? 4'd1 : known ? byte_at + 4'd1 : byte_at;
  always_ff @(posedge clk) begin
    known <= piece_valid && !piece_ready && room;
    if (room) begin
      byte_at <= state == S_NUMBER && piece_ready ? 4'd0 : byte_next;
      is_digit <= piece.digit[byte_next[2:0]] && byte_next != piece.len;
      nibble <= piece.data[8*byte_next[2:0]+:4];
      is_last <= byte_next == piece.len || byte_next + 4'd1 == piece.len;
    end
  end
  logic [63:0] number_next;
  logic [67:0] number_wide;
  // 10 * number + nibble, of which a half is 5 * number + 0 to 4: one adder, with 3 + 1 for a 4.
  logic [67:0] five;
  assign five = {1'b0, number, nibble[3:2] != '0, nibble[3] || nibble[1], 1'b1} + {3'b000, number, nibble[3]};
  assign number_wide = {five[67:1], nibble[0]};
  assign number_next = number_wide[63:0];
  logic number_over;        // it has got too large
  // What the number is where its word ends.
  logic number_spoilt;
  logic [31:0] number32;
  logic over_31_bits;
  assign over_31_bits = number[63:31] != '0;
  assign number_spoilt = counted_spoilt || number_over || (!any_digit && command != C_TOUCH && command != C_GAT && command != C_FLUSH);
  assign number32 = negative ? ~number[31:0] + 32'd1 : number[31:0];

  logic [3:0] body_take;    // of the value, in this cycle
  logic body_ends;          // and these are its last bytes
  logic text_get;
  assign text_get = command == C_GET || command == C_GAT;
  logic [8:0] key_total;
  assign key_total = {1'b0, m.klen} + {5'd0, piece.len};
  logic [3:0] key_room;     // bytes that the key may still get, up to 8
  logic key_fits;
  assign key_fits = piece.len <= key_room && !key_long;

  logic wants, take_ends;
  assign wants = active && (state == S_BODY || state == S_BODY_END);
  assign take_ends = active && ((state == S_BODY && reach_end(at, body_take)) || (state == S_BODY_END && at[2:1] == '1));
  logic emit, push_key, push_value;
  logic stops, quits;       // nothing more is read: after the operation that is emitted, or after none
  logic ends_value;         // what is behind a value is looked at after the operation has been emitted
  logic [3:0] take_bytes, value_part;
  meta_t e;                 // the operation that is emitted
  assign reading = '{wants: wants, take_bytes: take_bytes,
                     take_ends: take_ends, emit: emit, op: e,
                     ends_value: ends_value, quits: quits, push_key: push_key,
                     key_part: piece.len, push_value: push_value, value_part: value_part};
  always_comb begin
    take_bytes = body_take;
    emit = 1'b0;
    e = m;
    e.cas = number;       // the line's last one
    e.delta = number;
    e.eod = none_left && !(piece_valid && !piece.ends_line);
    stops = 1'b0;
    quits = 1'b0;
    ends_value = 1'b0;
    push_key = 1'b0;
    push_value = 1'b0;
    value_part = body_take;
    piece_ready = 1'b0;
    ends_number = 1'b0;
    case (state)
      S_COMMAND: begin
        piece_ready = room;
        if (begins_line && !line_complete) begin
          emit = 1'b1;
          stops = 1'b1;
          e.op = OP_ERROR;
          e.err = ERR_FORMAT;
          e.quiet = 1'b0;
          e.kbeats = '0;
          e.vbeats = '0;
          e.vlen = '0;
        end
      end
      S_ARG:
      if (go_arg) begin
        if (piece.len == 4'd0) begin
          piece_ready = 1'b1;
        end else if (refuses_gat) begin
        end else if (kind.is_key) begin
          piece_ready = 1'b1;
          push_key = 1'b1;
          if (text_get && piece.ends) begin
            emit = 1'b1;
            e.klen = {4'd0, piece.len};
            e.kbeats = 6'd1;
            e.last_key = piece.ends_line;
          end
        end else if (begins_number) begin
          ends_number = piece.digit[0] && piece.len == 4'd1;
          piece_ready = ends_number;
        end else begin
          piece_ready = 1'b1;
        end
      end
      S_KEY:
      if (go) begin
        piece_ready = 1'b1;
        push_key = piece.len != 4'd0 && m.kbeats < 6'd32;
        if (text_get && piece.ends && key_fits) begin
          emit = 1'b1;
          e.klen = key_total[7:0];
          e.kbeats = m.kbeats + {5'd0, piece.len != 4'd0};
          e.last_key = piece.ends_line;
        end
      end
      S_NUMBER:
      if (go && known) begin
        ends_number = !is_digit || (is_last && piece.ends);
        piece_ready = !is_digit || is_last;
      end
      S_REFUSED:
      if (room) begin
        emit = 1'b1;
        e.op = OP_ERROR;
        e.err = refusal;
        e.quiet = 1'b0;
      end
      S_EOL:
      if (room && !counted) begin
        e.quiet = last_is_noreply;
        e.vbeats = '0;
        e.vlen = '0;
        emit = 1'b1;
        case (command)
          C_GET, C_GAT: begin
            if (get_pending) begin
              e.op = OP_END;
              e.quiet = 1'b0;
            end else begin
              e.op = OP_ERROR;
              e.err = ERR_FORMAT;
              e.quiet = last_is_noreply && command == C_GET;
            end
          end
          C_STORE, C_CAS: begin
            if (field < 3'd4 || bad_length || bad_word) begin
              e.op = OP_ERROR;
              e.err = ERR_FORMAT;
              e.quiet = 1'b0;
            end else begin
              emit = 1'b0;
            end
          end
          C_DELETE:
          if (field < 3'd1 || key_long) begin
            e.op = OP_ERROR;
            e.err = ERR_FORMAT;
            if (field < 3'd1) e.quiet = 1'b0;
          end
          C_DELTA, C_TOUCH: begin
            if (field < 3'd2 || key_long) begin
              e.op = OP_ERROR;
              e.err = ERR_FORMAT;
              if (field < 3'd2) e.quiet = 1'b0;
            end else if (bad_word) begin
              e.op = OP_ERROR;
              e.err = command == C_DELTA ? ERR_DELTA : ERR_EXPTIME;
            end
          end
          C_FLUSH:
          if (bad_word && !(last_is_noreply && field == 3'd1)) begin
            e.op = OP_ERROR;
            e.err = ERR_EXPTIME;
          end
          C_VERBOSITY:
          if (field < 3'd1 || bad_word) begin
            e.op = OP_ERROR;
            e.err = ERR_FORMAT;
          end
          C_VERSION: begin
            e.op = OP_VERSION;
            e.quiet = 1'b0;
          end
          C_NOOP: begin
            e.op = too_short ? OP_ERROR : OP_NOOP;
            e.err = ERR_FORMAT;
            e.quiet = 1'b0;
          end
          C_QUIT: begin
            emit = 1'b0;
            quits = 1'b1;
          end
          C_UNSUPPORTED, C_STOP: begin
            stops = command == C_STOP;
            e.op = OP_ERROR;
            e.err = ERR_UNSUPPORTED;
          end
          default: begin
            e.op = OP_ERROR;
            e.err = too_short ? ERR_FORMAT : ERR_UNKNOWN;
          end
        endcase
      end
      S_CLOSE:
      if (room) begin
        emit = 1'b1;
        stops = 1'b1;
        e.op = OP_ERROR;
        e.err = ERR_FORMAT;
        e.quiet = 1'b0;
      end
      S_BODY:
      if (go8) begin
        push_value = 1'b1;
      end
      S_BODY_END:
      if (go8) begin
        take_bytes = 4'd2;
        emit = 1'b1;
        e.eod = body_is_last;
        if (key_long || bad_line) begin
          e.op = OP_ERROR;
          e.err = ERR_FORMAT;
        end else begin
          ends_value = 1'b1;
          if (m.vlen > 12'(VALUE_MAX)) begin
            e.op = OP_ERROR;
            e.err = ERR_TOOLARGE;
          end
        end
      end
      S_NAME, S_SKIP_WORD, S_REFUSE: piece_ready = room;
      default: ;
    endcase
    if (stops) e.eod = 1'b1;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= S_COMMAND;
      counted <= 1'b0;
      stale <= 1'b0;
    end else begin
      stale <= wants && ready;
      counted <= ends_number;
      case (state)
        S_COMMAND: if (go) state <= piece.ends ? after_word : S_NAME;
        S_NAME: if (go) state <= piece.ends ? after_word : S_SKIP_WORD;
        S_ARG:
        if (go_arg) begin
          if (piece.len == 4'd0) begin
            state <= after_word;
          end else if (refuses_gat) begin
            state <= S_REFUSE;
          end else if (kind.is_key) begin
            state <= !piece.ends ? S_KEY : text_get && piece.ends_line ? S_COMMAND : after_word;
          end else if (begins_number) begin
            state <= ends_number ? after_word : S_NUMBER;
          end else begin
            state <= piece.ends ? after_word : S_SKIP_WORD;
          end
        end
        S_KEY:
        if (go && piece.ends) begin
          state <= after_word;
          if (text_get && !key_fits) state <= piece.ends_line ? S_REFUSED : S_REFUSE;
          else if (text_get && piece.ends_line) state <= S_COMMAND;
        end
        S_NUMBER: if (ends_number) state <= piece.ends ? after_word : S_SKIP_WORD;
        S_SKIP_WORD: if (go && piece.ends) state <= after_word;
        S_REFUSE: if (go && piece.ends_line) state <= S_REFUSED;
        S_REFUSED: if (room) state <= S_COMMAND;
        S_EOL: if (room && !counted) state <= emit || command == C_QUIT ? S_COMMAND : body_missing ? S_CLOSE : m.vlen == 12'd0 ? S_BODY_END : S_BODY;
        S_BODY: if (go8 && body_ends) state <= S_BODY_END;
        S_BODY_END: if (go8) state <= S_COMMAND;
        // A storage command whose body is not all here.
        S_CLOSE: if (room) state <= S_COMMAND;
        default: ;
      endcase
    end

    if (state == S_ARG) begin
      if (go_arg && kind.is_number) number <= {60'd0, piece.digit[0] ? piece.data[3:0] : 4'd0};
    end else if (go && known && is_digit && state == S_NUMBER) begin
      number <= number_next;
    end
    counted_field <= field_next;
    counted_spoilt <= state == S_NUMBER && byte_at != piece.len && !is_digit;
    case (state)
      S_COMMAND: begin
        // What has no meaning for an operation stays.
        m.bin <= 1'b0;
        m.quiet <= 1'b0;
        m.ret_key <= 1'b0;
        m.vivify <= 1'b0;
        m.last_key <= 1'b0;
        m.own_cas <= 1'b0;
        m.eod <= 1'b0;
        m.err <= ERR_UNKNOWN;
        m.opcode <= '0;
        m.opaque <= '0;
        m.initial_value <= '0;
        m.cas <= '0;
        m.delta <= '0;
        m.exptime <= '0;
        m.klen <= '0;
        m.kbeats <= '0;
        m.vlen <= '0;
        m.vbeats <= '0;
        command <= word.named;
        begun <= word.begins;
        m.op <= word.named_op;
        m.ret_cas <= piece.len == 4'd4;  // gets, gats
        m.touch <= word.named == C_GAT;
        m.cas_cmp <= word.named == C_CAS;
        field <= '0;
        last_is_noreply <= 1'b0;
        bad_word <= 1'b0;
        bad_line <= 1'b0;
        bad_length <= 1'b0;
        get_pending <= 1'b0;
        key_long <= 1'b0;
        refusal <= ERR_FORMAT;
        too_short <= piece.short_line;
      end
      S_NAME: begin
        command <= named_long;
        m.op <= named_long == C_FLUSH ? OP_FLUSH : OP_OK;
      end
      S_ARG:
      if (go_arg) begin
        field <= field_next;
        if (kind.is_number) begin
          digits <= {4'd0, piece.digit[0]};
          negative <= !piece.digit[0];
          any_digit <= piece.digit[0];
          number_over <= 1'b0;
        end
        if (piece.len == 4'd0) begin
        end else if (refuses_gat) begin
          refusal <= ERR_EXPTIME;
        end else begin
          last_is_noreply <= word.noreply && piece.ends;
          if (kind.is_key) begin
            m.klen <= {4'd0, piece.len};
            m.kbeats <= 6'd1;
            key_room <= 4'd8;
            if (piece.ends && text_get) begin
              get_pending <= !piece.ends_line;
              m.kbeats <= '0;
              m.klen <= '0;
            end
          end else if (kind.is_number) begin
            // `field` counts the word when it begins.
            if (!begins_number) begin
              // Not a number.
              if (command == C_STORE || command == C_CAS) begin
                if (field == 3'd3) bad_length <= 1'b1;
                else bad_line <= 1'b1;
              end else begin
                bad_word <= 1'b1;
              end
            end
          end
        end
      end
      S_KEY:
      if (go) begin
        if (key_total > 9'(KEY_MAX)) key_long <= 1'b1;
        else m.klen <= key_total[7:0];
        key_room <= key_total <= 9'(KEY_MAX - 8) ? 4'd8 : key_total > 9'(KEY_MAX) ? 4'd0 : 4'(9'(KEY_MAX) - key_total);
        if (push_key) m.kbeats <= m.kbeats + 6'd1;
        if (piece.ends && text_get && key_fits) begin
          get_pending <= !piece.ends_line;
          m.kbeats <= '0;
          m.klen <= '0;
        end
      end
      S_NUMBER:
      if (go && known && is_digit) begin
        any_digit <= 1'b1;
        if (digits != 5'd31) digits <= digits + 5'd1;
        if (number_wide[67:64] != 4'd0) number_over <= 1'b1;
      end
      S_EOL:
      if (room) begin
        body_left <= m.vlen;
        body_take <= m.vlen > 12'd8 ? 4'd8 : m.vlen[3:0];
        body_ends <= m.vlen <= 12'd8;
        body_is_last <= {1'b0, m.vlen} == left_but_2;
        if (!counted) m.quiet <= last_is_noreply;
        if (command == C_CAS && field < 3'd5) bad_line <= 1'b1;
      end
      S_BODY:
      if (go8) begin
        m.vbeats <= m.vbeats + 9'd1;
        body_left <= body_left - 12'd8;
        body_take <= body_left > 12'd16 ? 4'd8 : body_left[3:0] - 4'd8;
        body_ends <= body_left <= 12'd16;
      end
      default: ;
    endcase
    if (counted) begin
      case (command)
        C_STORE, C_CAS:
        case (counted_field)
          3'd2: begin
            m.flags <= number[31:0];
            if (number_spoilt || digits == 5'd31) bad_line <= 1'b1;
          end
          3'd3: begin
            m.exptime <= number32;
            if (number_spoilt || digits == 5'd31 || number[63]) bad_line <= 1'b1;
          end
          3'd4: begin
            m.vlen <= number[11:0];
            if (number_spoilt || digits > 5'd10 || negative || (over_31_bits || number[30:1] == '1))
              bad_length <= 1'b1;
            // Longer than any datagram.
            if (number[63:12] != '0) m.vlen <= 12'hfff;
          end
          default: begin
            if (number_spoilt || digits > 5'd22) bad_line <= 1'b1;
          end
        endcase
        C_DELTA: begin
          if (number_spoilt || digits > 5'd22) bad_word <= 1'b1;
        end
        default: begin
          m.exptime <= number32;
          if (number_spoilt || digits > 5'd11 || over_31_bits) bad_word <= 1'b1;
          if (command == C_VERBOSITY && number[63:31] == 33'd1 && !number_spoilt)
            bad_word <= 1'b0;
        end
      endcase
    end
  end
endmodule
